#include "worker/data/row_encoder.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "tests/worker/fixture/fold_fixture.h"

namespace traind {
namespace {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

std::shared_ptr<const Table> OpenTable(const TableRows& rows) {
  const std::string state = NewStateDir();
  const std::string path =
      WriteState(state, rows, std::vector<int16_t>(rows.train_target.numbers.size(), 0));
  auto table = Table::Open(absl::StrCat(state, "/", path));
  EXPECT_TRUE(table.ok()) << table.status().ToString();
  return *table;
}

// One numeric column, one categorical column and a value to predict.
TableRows SmallRows(std::vector<float> numbers, std::vector<int32_t> codes,
                    std::vector<float> target) {
  TableRows rows;
  rows.schema.train_rows = static_cast<int64_t>(numbers.size());
  Column numeric, categorical;
  numeric.name = "n";
  categorical.name = "c";
  categorical.kind = ColumnKind::kCategorical;
  categorical.categories = {"a", "b", "c", "d"};
  rows.schema.features = {numeric, categorical};
  rows.schema.target = "y";
  rows.schema.target_kind = TargetKind::kValue;
  rows.train.resize(2);
  rows.test.resize(2);
  rows.train[0].numbers = std::move(numbers);
  rows.train[1].codes = std::move(codes);
  rows.train_target.numbers = std::move(target);
  return rows;
}

TEST(RowEncoderTest, NumericColumnsAreStandardisedByTheTrainingRowsAlone) {
  const auto table = OpenTable(SmallRows({1, 5, 1000}, {0, 0, 0}, {1, 2, 3}));
  const auto encoder = RowEncoder::Fit(table, {0, 1});
  const EncodedRows rows = encoder.Encode(Split::kTrain, 0, 3);
  ASSERT_EQ(encoder.numeric_width(), 1);
  EXPECT_FLOAT_EQ(rows.numeric[0], -1);
  EXPECT_FLOAT_EQ(rows.numeric[1], 1);
  EXPECT_FLOAT_EQ(rows.numeric[2], kMaxDeviations);  // clamped
}

TEST(RowEncoderTest, WordsOfTextsAreNotScaled) {
  TableRows rows = SmallRows({0, 0, 0, 1}, {0, 0, 0, 0}, {1, 2, 3, 4});
  rows.schema.features[0].source = "text";
  rows.schema.features[0].text_feature = {TextFeature::Kind::kWord, 0, "rare"};
  const auto encoder = RowEncoder::Fit(OpenTable(rows), {0, 1, 2, 3});
  const std::vector<float> x = encoder.Encode(Split::kTrain, 0, 4).numeric;
  EXPECT_FLOAT_EQ(x[0], -0.25f);
  EXPECT_FLOAT_EQ(x[3], 0.75f);
}

TEST(RowEncoderTest, SmoothClippingKeepsTheOrderOfFarValues) {
  const float huge = std::numeric_limits<float>::max();
  const auto table = OpenTable(SmallRows({1, 5, 9, 1000, 2000, -2000, huge, kMissing},
                                         std::vector<int32_t>(8, 0), {1, 2, 3, 4, 5, 6, 7, 8}));
  RowEncoder::State state = RowEncoder::Fit(table, {0, 1}).state();
  state.numeric[0].outliers = OutlierForm::kSmooth;
  const std::vector<float> x = RowEncoder(state, table).Encode(Split::kTrain, 0, 8).numeric;
  EXPECT_FLOAT_EQ(x[0], -1 / std::sqrt(1 + 1 / 9.0f));
  EXPECT_FLOAT_EQ(x[1], -x[0]);
  EXPECT_FLOAT_EQ(x[2], 3 / std::sqrt(2.0f));
  EXPECT_LT(x[2], x[3]);
  EXPECT_LT(x[3], x[4]);
  EXPECT_LT(x[4], kSmoothDeviations);
  EXPECT_NEAR(x[5], -x[4], 1e-3);
  EXPECT_EQ(x[6], kSmoothDeviations);
  EXPECT_EQ(x[7], 0);
}

// A column's form after fitting on values, a constant and a missing one among them.
OutlierForm FormOf(std::vector<float> values, OutlierForm heavy_tails = OutlierForm::kSmooth) {
  values.push_back(kMissing);
  const size_t rows = values.size();
  const auto table = OpenTable(
      SmallRows(std::move(values), std::vector<int32_t>(rows, 0), std::vector<float>(rows, 1)));
  std::vector<int32_t> all(rows);
  std::iota(all.begin(), all.end(), 0);
  return RowEncoder::Fit(table, all, {}, TargetForm::kAuto, InputWidths::kFold, heavy_tails)
      .state()
      .numeric[0]
      .outliers;
}

TEST(RowEncoderTest, OnlyHeavyTailsAreClippedSmoothly) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> light, heavy;
  for (int i = 0; i < 5000; ++i) {
    const float x = normal(random);
    light.push_back(100 + 3 * x);
    heavy.push_back(std::exp(x));  // a log-normal distribution
  }
  EXPECT_EQ(FormOf(light), OutlierForm::kClamp);
  EXPECT_EQ(FormOf(heavy), OutlierForm::kSmooth);
  EXPECT_EQ(FormOf(heavy, OutlierForm::kClamp), OutlierForm::kClamp);
  EXPECT_EQ(FormOf({5, 5, 5}), OutlierForm::kClamp) << "a constant has none";
  EXPECT_EQ(FormOf({}), OutlierForm::kClamp);
}

TEST(RowEncoderTest, MissingValuesAreTheMeanAndHaveAnIndicator) {
  const auto table = OpenTable(SmallRows({1, 3, kMissing}, {0, 0, 0}, {1, 2, 3}));
  const auto encoder = RowEncoder::Fit(table, {0, 1, 2});
  const EncodedRows rows = encoder.Encode(Split::kTrain, 0, 3);
  ASSERT_EQ(encoder.numeric_width(), 2);
  EXPECT_EQ(rows.numeric, (std::vector<float>{-1, 0, 1, 0, 0, 1}));
}

TEST(RowEncoderTest, WithoutMissingTrainingRowsThereIsNoIndicator) {
  const auto table = OpenTable(SmallRows({1, 3, kMissing}, {0, 0, 0}, {1, 2, 3}));
  const auto encoder = RowEncoder::Fit(table, {0, 1});
  ASSERT_EQ(encoder.numeric_width(), 1);
  EXPECT_EQ(encoder.Encode(Split::kTrain, 2, 3).numeric, std::vector<float>{0});
}

TEST(RowEncoderTest, ColumnsConstantOnTheTrainingRowsAreZeroEverywhere) {
  const auto table = OpenTable(SmallRows({0.1f, 0.1f, 7}, {0, 0, 0}, {1, 2, 3}));
  const auto encoder = RowEncoder::Fit(table, {0, 1});
  EXPECT_EQ(encoder.Encode(Split::kTrain, 0, 3).numeric, (std::vector<float>{0, 0, 0}));
}

TEST(RowEncoderTest, ColumnsWithoutAnyTrainingValueAreZero) {
  const auto table = OpenTable(SmallRows({kMissing, kMissing, 7}, {0, 0, 0}, {1, 2, 3}));
  const auto encoder = RowEncoder::Fit(table, {0, 1});
  ASSERT_EQ(encoder.numeric_width(), 1);
  EXPECT_EQ(encoder.Encode(Split::kTrain, 0, 3).numeric, (std::vector<float>{0, 0, 0}));
}

TEST(RowEncoderTest, CategoriesThatTheTrainingRowsLackAreUnseen) {
  const auto table =
      OpenTable(SmallRows({1, 2, 3, 4, 5}, {3, 1, kMissingCode, 0, 3}, {1, 2, 3, 4, 5}));
  const auto encoder = RowEncoder::Fit(table, {0, 1, 2});
  EXPECT_EQ(encoder.cardinalities(), std::vector<int64_t>{kFirstSeenCode + 2});
  EXPECT_EQ(encoder.Encode(Split::kTrain, 0, 5).codes,
            (std::vector<int32_t>{kFirstSeenCode, kFirstSeenCode + 1, kMissingInputCode,
                                  kUnseenInputCode, kFirstSeenCode}));
}

TEST(RowEncoderTest, TheTargetsScaleIsThatOfTheTrainingRows) {
  const auto table = OpenTable(SmallRows({1, 2, 3}, {0, 0, 0}, {10, 14, 1e6}));
  const auto encoder = RowEncoder::Fit(table, {0, 1});
  EXPECT_DOUBLE_EQ(encoder.target_mean()[0], 12);
  EXPECT_DOUBLE_EQ(encoder.target_scale()[0], 2);
  EXPECT_DOUBLE_EQ(RowEncoder::Fit(table, {0}).target_scale()[0], 1);
}

TEST(RowEncoderTest, PartsOfARangeEncodeAsTheWholeDoes) {
  FixtureOptions options;
  options.train_rows = 1000;
  const TableRows made = MakeRows(options);
  const std::string state = NewStateDir();
  const auto table =
      Table::Open(absl::StrCat(state, "/", WriteState(state, made, MakeFolds(options))));
  ASSERT_TRUE(table.ok()) << table.status().ToString();
  std::vector<int32_t> training(500);
  std::iota(training.begin(), training.end(), 0);
  const auto encoder = RowEncoder::Fit(*table, training);
  const EncodedRows whole = encoder.Encode(Split::kTrain, 0, 1000);
  const EncodedRows part = encoder.Encode(Split::kTrain, 300, 900);
  ASSERT_EQ(part.rows, 600);
  EXPECT_TRUE(std::equal(part.numeric.begin(), part.numeric.end(),
                         whole.numeric.begin() + 300 * encoder.numeric_width()));
  EXPECT_TRUE(std::equal(part.codes.begin(), part.codes.end(), whole.codes.begin() + 300 * 2));
}

TEST(RowEncoderTest, TheTargetsPastIsAnInputScaledByTheTrainingRowsAlone) {
  TableRows rows = SmallRows({1, 2, 3, 4}, {0, 0, 0, 0}, {10, 14, kMissing, 1e6});
  const auto encoder = RowEncoder::Fit(OpenTable(rows), {0, 1}, {2, 1});
  ASSERT_EQ(encoder.numeric_width(), 3);
  const EncodedRows encoded = encoder.Encode(Split::kTrain, 0, 4);
  const auto past = [&](int64_t row) {
    const float* const cells = encoded.numeric.data() + 3 * row + 1;
    return std::vector<float>(cells, cells + 2);
  };
  EXPECT_EQ(past(0), (std::vector<float>{-1, 0}));
  EXPECT_EQ(past(1), (std::vector<float>{1, 0}));
  EXPECT_EQ(past(2), (std::vector<float>{0, 1}));
  EXPECT_EQ(past(3), (std::vector<float>{kMaxDeviations, 0}));

  EncodedRows unknown = encoder.Unknown(2);
  EXPECT_EQ(unknown.numeric, (std::vector<float>{0, 0, 1, 0, 0, 1}));
  EXPECT_EQ(unknown.codes, (std::vector<int32_t>{kMissingInputCode, kMissingInputCode}));
  encoder.SetTargets({16}, 1, unknown);
  EXPECT_EQ(unknown.numeric, (std::vector<float>{0, 0, 1, 0, 2, 0}));
  // With a horizon of 0 the past is not used.
  EXPECT_EQ(RowEncoder::Fit(OpenTable(rows), {0, 1}, {2, 0}).numeric_width(), 1);
}

}  // namespace
}  // namespace traind
