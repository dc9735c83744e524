#include "worker/data/fold_rows.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/worker/fixture/fold_fixture.h"

namespace traind {
namespace {

std::shared_ptr<const Table> SixRows(std::vector<float> target) {
  FixtureOptions options;
  options.train_rows = 6;
  options.classification = false;
  TableRows rows = MakeRows(options);
  if (!target.empty()) rows.train_target.numbers = std::move(target);
  const std::string state = NewStateDir();
  auto table = Table::Open(absl::StrCat(state, "/", WriteState(state, rows, MakeFolds(options))));
  EXPECT_TRUE(table.ok()) << table.status().ToString();
  return *table;
}

TEST(FoldRowsTest, AFoldValidatesItsRowsAndTrainsOnTheOthers) {
  const auto rows = SplitFold(*SixRows({}), {0, 1, 2, 0, 1, 2}, 1);
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_EQ(rows->validation, (std::vector<int32_t>{1, 4}));
  EXPECT_EQ(rows->training, (std::vector<int32_t>{0, 2, 3, 5}));
}

TEST(FoldRowsTest, RowsWithoutATargetAreNotTrainedOnButPredicted) {
  const float missing = std::numeric_limits<float>::quiet_NaN();
  const auto rows = SplitFold(*SixRows({1, missing, missing, 4, 5, 6}), {0, 1, 2, 0, 1, 2}, 1);
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_EQ(rows->validation, (std::vector<int32_t>{1, 4}));
  EXPECT_EQ(rows->training, (std::vector<int32_t>{0, 3, 5}));
}

TEST(FoldRowsTest, FoldsOfAnotherTableAreRefused) {
  const auto rows = SplitFold(*SixRows({}), {0, 1, 2}, 1);
  EXPECT_TRUE(absl::IsDataLoss(rows.status())) << rows.status().ToString();
}

TEST(FoldRowsTest, AFoldWithoutRowsIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(SplitFold(*SixRows({}), {0, 1, 2, 0, 1, 2}, 3).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(SplitFold(*SixRows({}), {1, 1, 1, 1, 1, 1}, 1).status()));
}

TEST(BalancedClassWeightsTest, ClassesOfTheGivenRowsWeighAlike) {
  const std::vector<int32_t> classes = {0, 0, 0, 1, 2, 2};
  // The rows 0 to 3 have three of class 0, one of class 1 and none of class 2.
  const std::vector<float> weights = BalancedClassWeights(classes, {0, 1, 2, 3}, 3);
  ASSERT_EQ(weights.size(), 3u);
  EXPECT_FLOAT_EQ(weights[0], 4.0f / 9);
  EXPECT_FLOAT_EQ(weights[1], 4.0f / 3);
  EXPECT_EQ(weights[2], 0);
  EXPECT_FLOAT_EQ(3 * weights[0], weights[1]);
}

}  // namespace
}  // namespace traind
