#include "worker/trees/lag_encoder.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/data/table/table_reader.h"
#include "tests/common/data/table/table_fixture.h"
#include "worker/data/fold_rows.h"

namespace traind {
namespace {

constexpr int kTrainRows = 60, kTestRows = 5;
constexpr int64_t kWindow = 3, kHorizon = 2;

// Two series of which b is a hundred times as large; x tells the row.
double Value(int series, int row) { return (series == 0 ? 1 : 100) * (row + 3 * (row % 4)); }

// tested: the test rows have targets.
std::shared_ptr<const Table> MakeTable(int marked = -1, bool tested = false) {
  std::string train = "t,s,x,y\n", test = tested ? "t,s,x,y\n" : "t,s,x\n";
  for (int series = 0; series < 2; ++series) {
    for (int row = 0; row < kTrainRows + kTestRows; ++row) {
      absl::StrAppend(row < kTrainRows ? &train : &test, row, ",", series == 0 ? "a" : "b", ",",
                      row + 0.5);
      if (row < kTrainRows) absl::StrAppend(&train, ",", row == marked ? 1e6 : Value(series, row));
      if (row >= kTrainRows && tested) absl::StrAppend(&test, ",", Value(series, row));
      absl::StrAppend(row < kTrainRows ? &train : &test, "\n");
    }
  }
  TableSource source;
  source.train = {"train.csv", train};
  source.test = {"test.csv", test};
  source.target = "y";
  source.target_kind = TargetKind::kValue;
  source.time = "t";
  source.series = "s";
  source.history = true;
  return testing_table::OpenTable(ReadTable(source));
}

// A fold of a forward split, and its encoder.
struct Made {
  std::shared_ptr<const Table> table;
  SplitSpec split;
  std::vector<int16_t> fold_of;
  FoldRows rows;
  std::unique_ptr<LagEncoder> lags;
};

Made MakeFold(int fold, int marked = -1, bool raw = false,
              std::vector<std::string> known_ahead = {}) {
  Made made;
  made.table = MakeTable(marked);
  made.split.kind = SplitKind::kForward;
  made.split.folds = 3;
  made.split.shape = {kWindow, kHorizon};
  made.fold_of = *MakeFolds(*made.table, made.split);
  made.rows = *SplitFold(*made.table, made.fold_of, fold, made.split);
  const auto state = RowEncoder::Fit(made.table, made.rows.training, made.split.shape).state();
  const TreeEncoder columns(state, made.table->schema().features);
  made.lags = std::make_unique<LagEncoder>(made.table, columns, made.split, made.rows.training, "t",
                                           std::move(known_ahead), raw);
  return made;
}

size_t ColumnOf(const LagEncoder& lags, const std::string& name) {
  return static_cast<size_t>(std::find(lags.names().begin(), lags.names().end(), name) -
                             lags.names().begin());
}

// A cell as a value in the target's unit.
float Cell(const LagEncoder& lags, const LagRows& rows, const std::string& column, size_t row) {
  const size_t at = ColumnOf(lags, column) * static_cast<size_t>(rows.matrix.rows) + row;
  return rows.base[row] + rows.scale[row] * rows.matrix.values[at];
}

TEST(LagEncoderTest, ASampleHasWhatIsKnownSomeRowsBefore) {
  const Made made = MakeFold(1);
  const std::vector<LagSample> samples = {{1, 20, 1}, {1, 20, 2}, {0, 1, 2}};
  const LagRows rows = made.lags->Encode(samples);
  ASSERT_LT(ColumnOf(*made.lags, "season_4"), made.lags->names().size());
  for (size_t i = 0; i < 2; ++i) {
    const int known = 20 - static_cast<int>(samples[i].steps);
    EXPECT_NEAR(Cell(*made.lags, rows, "lag_0", i), Value(1, known), 0.1);
    EXPECT_NEAR(Cell(*made.lags, rows, "lag_2", i), Value(1, known - 2), 0.1);
    EXPECT_NEAR(Cell(*made.lags, rows, "season_4", i), Value(1, 16), 0.1);
    const size_t x = ColumnOf(*made.lags, "x") * 3 + i;
    EXPECT_EQ(rows.matrix.values[x], known + 0.5f);
    EXPECT_EQ(rows.matrix.values[ColumnOf(*made.lags, "steps") * 3 + i],
              static_cast<float>(samples[i].steps));
  }
  EXPECT_TRUE(std::isnan(Cell(*made.lags, rows, "lag_0", 2)));  // nothing is known before
  EXPECT_GT(rows.scale[0], 50 * rows.scale[2]);
}

TEST(LagEncoderTest, OfAColumnThatIsKnownAheadItHasTheRowsOwnValue) {
  const Made made = MakeFold(1, -1, false, {"x"});
  const std::vector<LagSample> samples = {{1, 20, 1}, {1, 20, 2}, {0, kTrainRows + 1, 2}};
  const LagRows rows = made.lags->Encode(samples);
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto own = static_cast<float>(samples[i].place) + 0.5f;
    EXPECT_EQ(rows.matrix.values[ColumnOf(*made.lags, "x") * 3 + i], own);
  }
  // Where the model goes on in later rows, too.
  const auto state = RowEncoder::Fit(made.table, made.rows.training, made.split.shape).state();
  const LagEncoder later(made.table, TreeEncoder(state, made.table->schema().features),
                         made.split.shape, "t", made.lags->state());
  const LagRows again = later.Encode(samples);
  EXPECT_EQ(again.matrix.values[ColumnOf(later, "x") * 3 + 2], kTrainRows + 1.5f);
}

TEST(LagEncoderTest, AFoldIsForecastAHorizonAtATime) {
  const Made made = MakeFold(1);
  const std::vector<LagSample> samples = made.lags->Validation(made.fold_of, 1);
  ASSERT_EQ(samples.size(), made.rows.validation.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    const int64_t row = samples[i].place + (samples[i].series == 0 ? 0 : kTrainRows);
    EXPECT_EQ(row, made.rows.validation[i]);
    const bool first = i == 0 || samples[i].series != samples[i - 1].series;
    EXPECT_EQ(samples[i].steps, first ? 1 : samples[i - 1].steps % kHorizon + 1);
  }
}

TEST(LagEncoderTest, ALaterRowLeavesNoTraceInAnEarlierFold) {
  const Made plain = MakeFold(0), marked = MakeFold(0, kTrainRows - 2);
  const auto a = plain.lags->Encode(plain.lags->training());
  const auto b = marked.lags->Encode(marked.lags->training());
  EXPECT_EQ(a.base, b.base);
  EXPECT_EQ(a.scale, b.scale);
  const auto validation = [](const Made& made) {
    return made.lags->Encode(made.lags->Validation(made.fold_of, 0)).base;
  };
  EXPECT_EQ(validation(plain), validation(marked));
}

TEST(LagEncoderTest, TestRowsGoOnFromPredictions) {
  Made made = MakeFold(2);
  std::vector<LagSample> next = made.lags->Test(0);
  ASSERT_EQ(next.size(), 2 * kHorizon);
  EXPECT_EQ(made.lags->TestRow(next[0]), 0);
  EXPECT_EQ(made.lags->TestRow(next[2]), kTestRows);
  for (const LagSample& sample : next) made.lags->SetValue(sample, 777);
  next = made.lags->Test(kHorizon);
  const LagRows rows = made.lags->Encode(next);
  EXPECT_NEAR(Cell(*made.lags, rows, "lag_0", 0), 777, 0.01);
  EXPECT_EQ(made.lags->Test(4).size(), 2u);  // one of each series is left
  EXPECT_TRUE(made.lags->Test(6).empty());
}

TEST(LagEncoderTest, RollingTestRowsKnowTheTargetsOfAHorizonBefore) {
  const auto table = MakeTable(-1, /*tested=*/true);
  SplitSpec split;
  split.kind = SplitKind::kForward;
  split.folds = 3;
  split.shape = {kWindow, kHorizon, /*rolling=*/true};
  const auto fold_of = *MakeFolds(*table, split);
  const FoldRows rows = *SplitFold(*table, fold_of, 2, split);
  const auto state = RowEncoder::Fit(table, rows.training, split.shape).state();
  LagEncoder lags(table, TreeEncoder(state, table->schema().features), split, rows.training, "t",
                  {},
                  /*raw=*/true);
  for (const LagSample& sample : lags.training()) EXPECT_EQ(sample.steps, kHorizon);
  for (const LagSample& sample : lags.Validation(fold_of, 2)) EXPECT_EQ(sample.steps, kHorizon);
  int calls = 0;
  std::vector<float> out(2 * kTestRows);
  const auto last_known = [&](const TreeMatrix& matrix, absl::Span<float> answers) {
    ++calls;
    const auto lag = matrix.values.begin();  // the first column
    std::copy(lag, lag + matrix.rows, answers.begin());
    return absl::OkStatus();
  };
  ASSERT_TRUE(lags.PredictTest(last_known, absl::MakeSpan(out)).ok());
  EXPECT_EQ(calls, 1);  // nothing has to be predicted first
  for (int series = 0; series < 2; ++series) {
    for (int row = 0; row < kTestRows; ++row) {
      EXPECT_EQ(out[static_cast<size_t>(series * kTestRows + row)],
                static_cast<float>(Value(series, kTrainRows + row - kHorizon)));
    }
  }
}

TEST(LagEncoderTest, RawValuesStayAsTheyAre) {
  const Made made = MakeFold(1, -1, /*raw=*/true);
  const LagRows rows = made.lags->Encode(std::vector<LagSample>{{1, 20, 1}});
  EXPECT_EQ(rows.base[0], 0);
  EXPECT_EQ(rows.scale[0], 1);
}

}  // namespace
}  // namespace traind
