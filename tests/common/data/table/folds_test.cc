#include "common/data/table/folds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int32_t> Classes(size_t rows, int32_t classes) {
  SeededRandom random(99);
  std::vector<int32_t> labels;
  for (size_t i = 0; i < rows; ++i) labels.push_back(static_cast<int32_t>(random.Below(classes)));
  return labels;
}

TEST(FoldsTest, SeededRandomIsSplitMix64) {
  // These are the first outputs of the published algorithm for this seed.
  SeededRandom random(1234567);
  EXPECT_EQ(random.Next(), 6457827717110365317u);
  EXPECT_EQ(random.Next(), 3203168211198807973u);
  EXPECT_EQ(random.Next(), 9817491932198370423u);
}

TEST(FoldsTest, SameSeedIsTheSameSplitOnEveryMachine) {
  const std::vector<int32_t> labels = {0, 1, 0, 1, 0, 1, 0, 1, 2, 2};
  EXPECT_THAT(*StratifiedFolds(labels, 3, 7), ElementsAre(2, 1, 0, 0, 1, 2, 0, 1, 0, 2));
  const std::vector<float> values = {5, 3, 9, 1, 7, 2};
  EXPECT_THAT(*StratifiedFolds(values, 2, 7), ElementsAre(0, 1, 1, 0, 0, 1));
}

TEST(FoldsTest, OtherSeedsSplitOtherwise) {
  const auto labels = Classes(1000, 3);
  EXPECT_EQ(*StratifiedFolds(labels, 5, 1), *StratifiedFolds(labels, 5, 1));
  EXPECT_NE(*StratifiedFolds(labels, 5, 1), *StratifiedFolds(labels, 5, 2));
}

TEST(FoldsTest, EveryFoldHasItsShareOfEveryClassAndOfAllRows) {
  for (const int folds : {2, 3, 5, 10}) {
    const auto labels = Classes(997, 7);
    const auto fold_of = *StratifiedFolds(labels, folds, 42);
    std::map<int, int> sizes;
    std::map<std::pair<int, int>, int> of_class;
    for (size_t i = 0; i < labels.size(); ++i) {
      ++sizes[fold_of[i]];
      ++of_class[{labels[i], fold_of[i]}];
    }
    ASSERT_EQ(sizes.size(), static_cast<size_t>(folds));
    for (const auto& [fold, size] : sizes) EXPECT_NEAR(size, 997.0 / folds, 1) << fold;
    for (int32_t label = 0; label < 7; ++label) {
      const double all = static_cast<double>(std::count(labels.begin(), labels.end(), label));
      for (int fold = 0; fold < folds; ++fold) {
        const int count = of_class[std::make_pair(label, fold)];
        EXPECT_NEAR(count, all / folds, 1);
      }
    }
  }
}

TEST(FoldsTest, FoldsOfValuesAreSpreadOverTheWholeRange) {
  std::vector<float> values;
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<float>((i * 37) % 1000));
  const auto fold_of = *StratifiedFolds(values, 5, 3);
  std::vector<double> sums(5), counts(5);
  for (size_t i = 0; i < values.size(); ++i) {
    sums[static_cast<size_t>(fold_of[i])] += values[i];
    counts[static_cast<size_t>(fold_of[i])] += 1;
  }
  for (size_t fold = 0; fold < 5; ++fold) {
    EXPECT_EQ(counts[fold], 200);
    EXPECT_NEAR(sums[fold] / counts[fold], 499.5, 2);
  }
}

TEST(FoldsTest, ClassesSmallerThanTheNumberOfFoldsAreFine) {
  const std::vector<int32_t> labels = {0, 0, 0, 0, 0, 0, 1, 2};
  const auto fold_of = *StratifiedFolds(labels, 4, 0);
  std::map<int, int> sizes;
  for (const int16_t fold : fold_of) ++sizes[fold];
  EXPECT_EQ(sizes.size(), 4u);
  for (const auto& [fold, size] : sizes) EXPECT_EQ(size, 2);
}

TEST(FoldsTest, FewerRowsThanFoldsIsAnErrorThatSaysSo) {
  const auto status = StratifiedFolds(std::vector<int32_t>{0, 1, 0}, 5, 0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("3 training rows are too few"));
  EXPECT_FALSE(StratifiedFolds(std::vector<float>{1}, 2, 0).ok());
  EXPECT_FALSE(StratifiedFolds(std::vector<float>{1, 2, 3}, 1, 0).ok());
  EXPECT_TRUE(StratifiedFolds(std::vector<float>{1, 2, 3}, 3, 0).ok());
}

TEST(FoldsTest, BelowIsUniform) {
  SeededRandom random(5);
  std::vector<int> counts(6);
  for (int i = 0; i < 60'000; ++i) ++counts[random.Below(6)];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 400);
}

TEST(FoldsTest, NoGroupIsInTwoFoldsAndFoldsAreBalanced) {
  SeededRandom random(5);
  std::vector<int32_t> groups;
  for (int i = 0; i < 1000; ++i) groups.push_back(static_cast<int32_t>(random.Below(60)));
  const auto fold_of = *GroupedFolds(groups, 5, 1);
  std::map<int32_t, int16_t> fold_of_group;
  std::map<int16_t, int> sizes;
  for (size_t i = 0; i < groups.size(); ++i) {
    EXPECT_EQ(fold_of_group.emplace(groups[i], fold_of[i]).first->second, fold_of[i]);
    ++sizes[fold_of[i]];
  }
  ASSERT_EQ(sizes.size(), 5u);
  for (const auto& [fold, size] : sizes) EXPECT_NEAR(size, 200, 20) << fold;
  EXPECT_EQ(*GroupedFolds(groups, 5, 1), fold_of);
  EXPECT_THAT(std::string(GroupedFolds(std::vector<int32_t>{1, 1, 2, 2}, 3, 0).status().message()),
              HasSubstr("data.group has 2 groups, too few for data.folds: 3"));
}

TEST(FoldsTest, RandomFoldsHaveTheSameSize) {
  const auto fold_of = *RandomFolds(103, 4, 9);
  for (int fold = 0; fold < 4; ++fold) {
    EXPECT_NEAR(static_cast<double>(std::count(fold_of.begin(), fold_of.end(), fold)), 103 / 4.0,
                1);
  }
  EXPECT_NE(fold_of, *RandomFolds(103, 4, 10));
}

TEST(FoldsTest, ForwardFoldsFollowTheTimesAndKeepEqualOnesTogether) {
  EXPECT_THAT(*ForwardFolds(std::vector<double>{6, 5, 4, 3, 2, 1}, 2),
              ElementsAre(1, 1, 0, 0, -1, -1));
  EXPECT_THAT(*ForwardFolds(std::vector<double>{1, 1, 1, 2, 2, 3}, 2),
              ElementsAre(-1, -1, -1, 0, 0, 1));
  EXPECT_THAT(
      std::string(ForwardFolds(std::vector<double>{1, 1, 1, 2, 2, 2}, 2).status().message()),
      HasSubstr("too few different times"));
  EXPECT_THAT(*ForwardFolds(std::vector<double>{1, 2, 3, 4, 5, 6}, 2, 4),
              ElementsAre(-1, -1, -1, -1, 0, 1));
  EXPECT_THAT(*ForwardFolds(std::vector<double>{1, 2, 3, 4, 5, 6}, 2, 1),
              ElementsAre(-1, -1, 0, 0, 1, 1));
}

}  // namespace
}  // namespace traind
