#include "server/plan/epoch_rungs.h"

#include <gtest/gtest.h>

namespace traind {
namespace {

// Reports of fold 0 with nine epochs: rungs after 1 and 3.
std::optional<EpochRungs::Place> At(EpochRungs& rungs, int trial, int epoch, double metric,
                                    bool higher = true) {
  return rungs.Take({trial, 0, epoch, 9, metric}, higher);
}

TEST(EpochRungsTest, TwoTrialsAreTooFewToCompare) {
  EpochRungs rungs;
  EXPECT_FALSE(At(rungs, 0, 1, 0.9));
  EXPECT_FALSE(At(rungs, 1, 1, 0.1));
}

TEST(EpochRungsTest, OfThreeTheBestGoesOnAndOfFourTheBestTwo) {
  EpochRungs rungs;
  EXPECT_FALSE(At(rungs, 0, 1, 0.5));
  EXPECT_FALSE(At(rungs, 1, 1, 0.4));
  const auto third = At(rungs, 2, 1, 0.3);
  ASSERT_TRUE(third);
  EXPECT_EQ(third->epochs, 1);
  EXPECT_EQ(third->place, 3);
  EXPECT_EQ(third->trials, 3);
  EXPECT_FALSE(At(rungs, 3, 1, 0.45)) << "the second of four";
}

TEST(EpochRungsTest, LossesCompareTheOtherWayRound) {
  EpochRungs rungs;
  At(rungs, 0, 1, 0.5, false);
  At(rungs, 1, 1, 0.4, false);
  EXPECT_FALSE(At(rungs, 2, 1, 0.3, false));
  EXPECT_FALSE(At(rungs, 3, 1, 0.35, false));
  EXPECT_TRUE(At(rungs, 4, 1, 0.45, false));
}

TEST(EpochRungsTest, EachRungIsPassedOnceAndBetweenThemNobodyStops) {
  EpochRungs rungs;
  for (int trial = 0; trial < 3; ++trial) At(rungs, trial, 1, 0.9 - trial);
  EXPECT_FALSE(At(rungs, 2, 1, -9)) << "told again";
  EXPECT_FALSE(At(rungs, 2, 2, -9));
  EXPECT_FALSE(At(rungs, 0, 3, 0.5));
  EXPECT_FALSE(At(rungs, 1, 3, 0.4));
  EXPECT_EQ(At(rungs, 2, 4, 0.3)->epochs, 3) << "its third epoch was not told by itself";
}

TEST(EpochRungsTest, FoldsAreJudgedByThemselves) {
  EpochRungs rungs;
  for (int trial = 0; trial < 3; ++trial) At(rungs, trial, 1, 0.9);
  EXPECT_FALSE(rungs.Take({1, 1, 1, 9, 0.1}, true));
}

TEST(EpochRungsTest, AFoldOfOneEpochHasNoRungs) {
  EpochRungs rungs;
  for (int trial = 0; trial < 5; ++trial) {
    EXPECT_FALSE(rungs.Take({trial, 0, 1, 1, -trial * 1.0}, true));
  }
}

}  // namespace
}  // namespace traind
