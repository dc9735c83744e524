// A marker in a later row must leave no trace in an earlier fold: neither in its training data,
// nor in the scaling and coding of its rows.
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/data/table/folds.h"
#include "common/data/table/table_reader.h"
#include "tests/common/data/table/table_fixture.h"
#include "worker/data/fold_rows.h"
#include "worker/data/row_encoder.h"

namespace traind {
namespace {

constexpr int kRows = 120;
constexpr int kMarked = 100;
constexpr SampleShape kShape = {5, 2};

std::shared_ptr<const Table> MakeTable(bool marked, bool marked_test) {
  std::string train = "t,x,word,y\n", test = "t,x,word,y\n";
  for (int row = 0; row < kRows + 10; ++row) {
    const bool mark = row < kRows ? marked && row == kMarked : marked_test;
    absl::StrAppend(row < kRows ? &train : &test, row, ",", mark ? 1e9 : row % 9, ",",
                    mark ? "never" : (row % 2 == 0 ? "even" : "odd"), ",", mark ? 1e9 : row % 7,
                    "\n");
  }
  TableSource source;
  source.train = {"train.csv", train};
  source.test = {"test.csv", test};
  source.target = "y";
  source.target_kind = TargetKind::kValue;
  source.time = "t";
  source.history = true;
  return testing_table::OpenTable(ReadTable(source));
}

SplitSpec Forward() {
  SplitSpec split;
  split.folds = 3;
  split.shape = kShape;
  return split;
}

struct Fold {
  FoldRows rows;
  EncodedRows encoded;  // the rows before the marker
  std::vector<int64_t> cardinalities;
};

Fold MakeFold(const std::shared_ptr<const Table>& table, int fold) {
  const auto fold_of = MakeFolds(*table, Forward());
  EXPECT_TRUE(fold_of.ok()) << fold_of.status();
  Fold made;
  made.rows = *SplitFold(*table, *fold_of, fold, Forward());
  const RowEncoder encoder = RowEncoder::Fit(table, made.rows.training, kShape);
  made.encoded = encoder.Encode(Split::kTrain, 0, kMarked);
  made.cardinalities = encoder.cardinalities();
  return made;
}

TEST(ForecastLeakTest, ALaterRowLeavesNoTraceInAnEarlierFold) {
  const auto plain = MakeTable(false, false), marked = MakeTable(true, false);
  for (int fold = 0; fold < 3; ++fold) {
    const Fold a = MakeFold(plain, fold), b = MakeFold(marked, fold);
    EXPECT_EQ(a.rows.training, b.rows.training);
    EXPECT_EQ(a.rows.validation, b.rows.validation);
    // The last block begins before the marker, so no fold trains on it.
    ASSERT_LT(a.rows.training.back(), kMarked);
    EXPECT_EQ(a.encoded.numeric, b.encoded.numeric) << fold;
    EXPECT_EQ(a.encoded.codes, b.encoded.codes) << fold;
    EXPECT_EQ(a.cardinalities, b.cardinalities) << fold;
  }
}

TEST(ForecastLeakTest, EveryFoldIsTrainedOnWhatIsKnownWhenItsFirstRowIsPredicted) {
  const auto table = MakeTable(false, false);
  for (int fold = 0; fold < 3; ++fold) {
    const Fold made = MakeFold(table, fold);
    EXPECT_LE(made.rows.training.back(), made.rows.validation.front() - kShape.horizon);
    EXPECT_GE(made.rows.training.front(), kShape.history());
  }
}

TEST(ForecastLeakTest, TheTestFileLeavesNoTraceInAnyFold) {
  const auto plain = MakeTable(false, false), marked = MakeTable(false, true);
  for (int fold = 0; fold < 3; ++fold) {
    const Fold a = MakeFold(plain, fold), b = MakeFold(marked, fold);
    EXPECT_EQ(a.encoded.numeric, b.encoded.numeric);
    EXPECT_EQ(a.encoded.codes, b.encoded.codes);
  }
  // Not even as its own rows' past.
  const auto encoder = [](const std::shared_ptr<const Table>& table) {
    return RowEncoder::Fit(table, MakeFold(table, 2).rows.training, kShape);
  };
  const EncodedRows a = encoder(plain).Encode(Split::kTest, 0, 10);
  const EncodedRows b = encoder(marked).Encode(Split::kTest, 0, 10);
  const auto width = static_cast<size_t>(encoder(plain).numeric_width());
  for (size_t row = 0; row < 10; ++row) {
    for (size_t k = width - 2; k < width; ++k) {
      EXPECT_EQ(a.numeric[row * width + k], b.numeric[row * width + k]);
    }
  }
}

}  // namespace
}  // namespace traind
