#include "server/plan/budget_rules.h"

#include <gtest/gtest.h>

namespace traind {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);

Window WindowOf(double seconds) { return {kStart, kStart + absl::Seconds(seconds)}; }
Window Unbounded() { return {kStart, absl::InfiniteFuture()}; }
absl::Time At(double seconds) { return kStart + absl::Seconds(seconds); }

FoldCost Cost(double epoch_s, double predict_s = 0, double overhead_s = 0) {
  FoldCost cost;
  cost.step_s = epoch_s / 100;
  cost.steps_per_epoch = 100;
  cost.epoch_s = epoch_s;
  cost.predict_s = predict_s;
  cost.overhead_s = overhead_s;
  return cost;
}

// ---- what a fold costs ----

TEST(CostTest, IsUnknownBeforeAnythingWasMeasured) {
  EXPECT_FALSE(CostOf(Measured()).known());
  Measured only_steps;
  only_steps.steps_per_epoch = 100;
  EXPECT_FALSE(CostOf(only_steps).known());
}

TEST(CostTest, TimedStepsStandForAnEpochUntilThereWasAWholeOne) {
  Measured measured;
  measured.step_s = 0.02;
  measured.steps_per_epoch = 100;
  measured.evaluate_s = 0.5;
  EXPECT_DOUBLE_EQ(CostOf(measured).epoch_s, 2.5);
  measured.epoch_s = 3;
  EXPECT_DOUBLE_EQ(CostOf(measured).epoch_s, 3.5);
}

// ---- B1 ----

TEST(B1EstimateTest, FoldsFillTheGangThatIsFreeFirst) {
  EXPECT_DOUBLE_EQ(EstimateSeconds({{}, {10, 10, 10, 10, 10}, 1, 1}), 50);
  EXPECT_DOUBLE_EQ(EstimateSeconds({{}, {10, 10, 10, 10, 10}, 2, 1}), 30);
  EXPECT_DOUBLE_EQ(EstimateSeconds({{}, {10, 10, 10, 10, 10}, 5, 1}), 10);
  EXPECT_DOUBLE_EQ(EstimateSeconds({{8, 2}, {10, 10}, 2, 1}), 18);
}

TEST(B1EstimateTest, NoWorkTakesNoTime) { EXPECT_DOUBLE_EQ(EstimateSeconds({{}, {}, 2, 1}), 0); }

TEST(B1EstimateTest, TakingTurnsDelaysOnlyWhatWaits) {
  EXPECT_DOUBLE_EQ(EstimateSeconds({{}, {10}, 1, 3}), 30);
  EXPECT_DOUBLE_EQ(EstimateSeconds({{10}, {}, 1, 3}), 10);
}

TEST(B1EstimateTest, MoreRunThanTheGangsThereAreNow) {
  EXPECT_DOUBLE_EQ(EstimateSeconds({{5, 7, 9}, {1}, 1, 1}), 9);
}

// ---- B2 ----

TEST(B2FitTest, AnEstimateMayFillThePlansShareOfTheWindow) {
  EXPECT_TRUE(PlanFits(WindowOf(60), 0.8, At(48)));
  EXPECT_FALSE(PlanFits(WindowOf(60), 0.8, At(48.1)));
}

TEST(B2FitTest, WithoutADeadlineEverythingFits) {
  EXPECT_TRUE(PlanFits(Unbounded(), 0.8, At(1e9)));
}

TEST(B2CutTest, FoldsAreCutToThree) {
  EXPECT_EQ(CutFolds(5, 0), 3);
  EXPECT_EQ(CutFolds(10, 2), 3);
  EXPECT_EQ(CutFolds(4, 1), 3);
}

TEST(B2CutTest, ThreeOrFewerStay) {
  EXPECT_EQ(CutFolds(3, 0), 3);
  EXPECT_EQ(CutFolds(2, 0), 2);
}

TEST(B2CutTest, FoldsThatHaveStartedStay) {
  EXPECT_EQ(CutFolds(5, 4), 4);
  EXPECT_EQ(CutFolds(5, 5), 5);
}

TEST(B2CutTest, EpochsGoDownByThirtyToFiftyPercentAsGentlyAsFits) {
  const auto fits_from = [](int most) { return [most](int e) { return e <= most; }; };
  EXPECT_EQ(CutEpochs(20, fits_from(20)), 14);
  EXPECT_EQ(CutEpochs(20, fits_from(14)), 14);
  EXPECT_EQ(CutEpochs(20, fits_from(12)), 12);
  EXPECT_EQ(CutEpochs(20, fits_from(10)), 10);
  EXPECT_EQ(CutEpochs(20, fits_from(1)), 10);
  for (int epochs = 2; epochs <= 1000; ++epochs) {
    for (int most : {0, epochs / 2, epochs * 6 / 10, epochs}) {
      const int cut = CutEpochs(epochs, fits_from(most));
      EXPECT_GE(cut, 1);
      EXPECT_LE(2 * (epochs - cut), epochs) << epochs << " to " << cut;
      // Small numbers have no step between 30 and 50 %.
      if (epochs > 3) {
        EXPECT_GE(10 * (epochs - cut), 3 * epochs) << epochs << " to " << cut;
      }
    }
  }
}

TEST(B2CutTest, OneEpochStays) {
  EXPECT_EQ(CutEpochs(1, [](int) { return false; }), 1);
}

// ---- B3 ----

TEST(B3FirstFoldTest, IsSlowBeyondItsShareOfTheWindow) {
  EXPECT_FALSE(FirstFoldIsSlow(WindowOf(60), 0.2, absl::Seconds(12)));
  EXPECT_TRUE(FirstFoldIsSlow(WindowOf(60), 0.2, absl::Seconds(12.1)));
}

TEST(B3FirstFoldTest, IsNeverSlowWithoutADeadline) {
  EXPECT_FALSE(FirstFoldIsSlow(Unbounded(), 0.2, absl::Hours(100)));
}

// ---- B4 ----

TEST(B4ReserveTest, IsTheShareUntilPredictionWasMeasured) {
  EXPECT_EQ(Reserve(WindowOf(60), Spec(), 0, absl::Milliseconds(400)), absl::Seconds(9));
}

// A step and a prediction that nobody has timed take as long in a short window.
TEST(B4ReserveTest, IsMoreThanTheShareOfAShortWindowUntilPredictionWasMeasured) {
  const absl::Duration finalize = absl::Milliseconds(150);
  EXPECT_EQ(Reserve(WindowOf(2), Spec(), 0, finalize), absl::Milliseconds(550));
  EXPECT_EQ(Reserve(WindowOf(1), Spec(), 0, finalize), absl::Milliseconds(300));
  EXPECT_EQ(Reserve(WindowOf(4), Spec(), 0, finalize), absl::Milliseconds(600));
  Spec fixed;
  fixed.policy = Policy::kFixed;
  EXPECT_EQ(Reserve(WindowOf(2), fixed, 0, finalize), absl::Milliseconds(300));
}

TEST(B4ReserveTest, IsWhatPredictionNeedsOnceMeasured) {
  const auto reserve = [](double stop_s) {
    return Reserve(WindowOf(60), Spec(), stop_s, absl::Milliseconds(400));
  };
  EXPECT_EQ(reserve(1), absl::Seconds(1.7));
  EXPECT_EQ(reserve(0.001), absl::Milliseconds(401.3));
  // The share bounds it from above.
  EXPECT_EQ(reserve(6.8), absl::Seconds(9));
}

TEST(B4ReserveTest, HasAFloor) {
  EXPECT_EQ(Reserve(WindowOf(60), Spec(), 0.001, absl::Milliseconds(10)), absl::Milliseconds(400));
}

TEST(B4ReserveTest, ExceedsTheShareWhereTheMeasuredNeedAloneDoes) {
  EXPECT_EQ(Reserve(WindowOf(60), Spec(), 20, absl::Milliseconds(400)), absl::Seconds(22.4));
  EXPECT_EQ(Reserve(WindowOf(60), Spec(), 500, absl::Milliseconds(400)), absl::Seconds(54));
}

TEST(B4ReserveTest, StaysTheShareUnderTheFixedPolicy) {
  Spec spec;
  spec.policy = Policy::kFixed;
  EXPECT_EQ(Reserve(WindowOf(60), spec, 0.5, absl::Milliseconds(400)), absl::Seconds(9));
}

TEST(B4ReserveTest, MarginAndLeastAreTheSpecs) {
  Spec spec;
  spec.shares.reserve_margin = 2;
  spec.shares.reserve_least = absl::Seconds(3);
  EXPECT_EQ(Reserve({At(0), At(100)}, spec, 4, absl::Seconds(1)), absl::Seconds(9));
  EXPECT_EQ(Reserve({At(0), At(100)}, spec, 0.1, absl::Seconds(1)), absl::Seconds(3));
}

TEST(B4ReserveTest, FollowsTheSpecsShare) {
  Spec spec;
  spec.shares.reserve = 0.3;
  EXPECT_EQ(Reserve(WindowOf(60), spec, 0, absl::Milliseconds(400)), absl::Seconds(18));
}

TEST(B4ReserveTest, IsNothingWithoutADeadline) {
  EXPECT_EQ(Reserve(Unbounded(), Spec(), 1, absl::Seconds(1)), absl::ZeroDuration());
}

TEST(B4ReserveTest, CountsTheStepThatIsUnderWay) {
  FoldCost cost = Cost(10, 2);
  cost.step_s = 0.1;
  cost.step_p90_s = 0.3;
  EXPECT_DOUBLE_EQ(StopSeconds(cost), 2.3);
  cost.predict_s = 0;
  EXPECT_DOUBLE_EQ(StopSeconds(cost), 0);
}

TEST(FinalizeLeadTest, IsTheMarginUntilPublishingWasMeasured) {
  const absl::Duration margin = absl::Milliseconds(400);
  EXPECT_EQ(FinalizeLead(WindowOf(60), absl::ZeroDuration(), margin), margin);
  EXPECT_EQ(FinalizeLead(WindowOf(60), absl::Milliseconds(10), margin), absl::Milliseconds(150));
  EXPECT_EQ(FinalizeLead(WindowOf(60), absl::Seconds(1), margin), absl::Seconds(3));
}

TEST(FinalizeLeadTest, LeavesMostOfAShortWindow) {
  const absl::Duration margin = absl::Milliseconds(400);
  EXPECT_EQ(FinalizeLead(WindowOf(1), absl::ZeroDuration(), margin), absl::Milliseconds(250));
  EXPECT_EQ(FinalizeLead(WindowOf(4), absl::Seconds(5), margin), absl::Seconds(1));
}

TEST(SettleLeadTest, IsShortAndBehindTheFinalizing) {
  const absl::Duration margin = absl::Milliseconds(400);
  for (double window : {1.0, 3.0, 10.0, 1000.0}) {
    const absl::Duration settle = SettleLead(WindowOf(window), margin);
    EXPECT_GT(settle, absl::Milliseconds(10));
    EXPECT_LE(settle, absl::Milliseconds(100));
    EXPECT_LT(settle, FinalizeLead(WindowOf(window), absl::Milliseconds(1), margin));
  }
}

// ---- B5 ----

TEST(B5StopTest, AdaptiveStopsOnlyWhatCannotFinish) {
  const Spec spec;
  const Window window = WindowOf(60);
  EXPECT_FALSE(MustStop(window, spec, At(41.9), At(80), At(58)));
  EXPECT_TRUE(MustStop(window, spec, At(42), At(80), At(58)));
  EXPECT_FALSE(MustStop(window, spec, At(42), At(57), At(58)));
}

TEST(B5StopTest, FixedStopsInAnyCase) {
  Spec spec;
  spec.policy = Policy::kFixed;
  EXPECT_FALSE(MustStop(WindowOf(60), spec, At(41.9), At(43), At(42)));
  EXPECT_TRUE(MustStop(WindowOf(60), spec, At(42), At(41), At(42)));
}

TEST(B5StopTest, WithoutADeadlineNothingStops) {
  EXPECT_FALSE(MustStop(Unbounded(), Spec(), At(1e6), At(1e9), absl::InfiniteFuture()));
}

TEST(B5StopTest, TrainingEndsBeforeTheReserve) {
  EXPECT_EQ(TrainEnd(WindowOf(60), Spec(), absl::Seconds(2)), At(58));
  EXPECT_EQ(TrainEnd(Unbounded(), Spec(), absl::ZeroDuration()), absl::InfiniteFuture());
}

TEST(B5StopTest, FixedPlansEndTrainingAtTheStopShare) {
  Spec spec;
  spec.policy = Policy::kFixed;
  EXPECT_EQ(TrainEnd(WindowOf(60), spec, absl::Seconds(9)), At(42));
  spec.shares.stop = 0.95;
  EXPECT_EQ(TrainEnd(WindowOf(60), spec, absl::Seconds(9)), At(51));
}

// ---- B8 ----

TEST(B8SettleTest, WhateverExistsCounts) {
  Task task;
  EXPECT_EQ(SettledState(task), TaskState::kDropped);
  task.attempts = 1;
  EXPECT_EQ(SettledState(task), TaskState::kFailed);
  task.member.emplace();
  EXPECT_EQ(SettledState(task), TaskState::kPartial);
  task.member->complete = true;
  EXPECT_EQ(SettledState(task), TaskState::kDone);
}

// ---- B11 ----

TEST(B11DeadlineTest, TheEarlierOfBudgetAndDeadlineCounts) {
  Spec spec;
  EXPECT_EQ(DeadlineOf(spec, kStart), absl::InfiniteFuture());
  spec.budget = absl::Seconds(60);
  EXPECT_EQ(DeadlineOf(spec, kStart), At(60));
  spec.deadline = At(30);
  EXPECT_EQ(DeadlineOf(spec, kStart), At(30));
  spec.deadline = At(90);
  EXPECT_EQ(DeadlineOf(spec, kStart), At(60));
  spec.budget.reset();
  EXPECT_EQ(DeadlineOf(spec, kStart), At(90));
}

// ---- B13 ----

TEST(B13RetryTest, ThePauseDoublesUpToACap) {
  const absl::Duration forever = absl::InfiniteDuration();
  EXPECT_EQ(RetryDelay(1, forever), absl::Milliseconds(200));
  EXPECT_EQ(RetryDelay(2, forever), absl::Milliseconds(400));
  EXPECT_EQ(RetryDelay(3, forever), absl::Milliseconds(800));
  EXPECT_EQ(RetryDelay(100, forever), absl::Seconds(30));
}

TEST(B13RetryTest, ThePauseIsAtMostATenthOfWhatIsLeft) {
  EXPECT_EQ(RetryDelay(5, absl::Seconds(10)), absl::Seconds(1));
  EXPECT_EQ(RetryDelay(1, absl::ZeroDuration()), absl::ZeroDuration());
  EXPECT_EQ(RetryDelay(1, -absl::Seconds(3)), absl::ZeroDuration());
}

// ---- starting and stopping a fold ----

TEST(LatestStartTest, LeavesRoomForTheStartAndOneEpoch) {
  EXPECT_EQ(LatestUsefulStart(Cost(4, 1, 0.5), 20, At(50)), At(45.5));
}

TEST(LatestStartTest, TheRestOfAnEpochNeedsLess) {
  EXPECT_EQ(LatestUsefulStart(Cost(4, 1, 0.5), 0.5, At(50)), At(47.5));
}

TEST(LatestStartTest, UnmeasuredFoldsNeedALittle) {
  EXPECT_EQ(LatestUsefulStart(FoldCost(), 20, At(50)), At(49.7));
}

TEST(LatestStartTest, WithoutADeadlineItIsNeverTooLate) {
  EXPECT_EQ(LatestUsefulStart(Cost(4), 20, absl::InfiniteFuture()), absl::InfiniteFuture());
}

TEST(FairStopTest, SharesWhatIsLeftWithThoseBehind) {
  EXPECT_EQ(FairStop(At(0), At(0), At(50), 4, 1, Cost(1)), At(10));
  EXPECT_EQ(FairStop(At(20), At(20), At(50), 2, 1, Cost(1)), At(30));
  EXPECT_EQ(FairStop(At(20), At(25), At(50), 0, 1, Cost(1)), At(50));
}

TEST(FairStopTest, JobsThatTakeTurnsShareToo) {
  EXPECT_EQ(FairStop(At(0), At(0), At(50), 0, 5, Cost(1)), At(10));
}

TEST(FairStopTest, NeverEndsBeforeOneEpochNorAfterTrainingEnds) {
  EXPECT_EQ(FairStop(At(0), At(0), At(50), 49, 1, Cost(8, 1, 2)), At(10));
  EXPECT_EQ(FairStop(At(45), At(45), At(50), 3, 1, Cost(8)), At(50));
}

TEST(FairStopTest, AnUnmeasuredFoldIsNotStoppedBeforeItsFirstStep) {
  EXPECT_EQ(FairStop(At(0), At(0), At(50), 9, 3, FoldCost()), At(50));
}

TEST(FairStopTest, IsNotInThePast) {
  EXPECT_EQ(FairStop(At(0), At(30), At(50), 4, 1, Cost(1)), At(30));
}

TEST(FairStopTest, WithoutADeadlineNothingStops) {
  EXPECT_EQ(FairStop(At(0), At(0), absl::InfiniteFuture(), 4, 1, Cost(1)), absl::InfiniteFuture());
}

TEST(CheckpointEveryTest, FollowsTheTimeOfTheJobWhereTheSpecAsksForNone) {
  EXPECT_EQ(CheckpointEvery(std::nullopt, absl::Minutes(10)), absl::Seconds(30));
  EXPECT_EQ(CheckpointEvery(std::nullopt, absl::Seconds(5)), absl::Seconds(1));
  EXPECT_EQ(CheckpointEvery(std::nullopt, absl::Hours(5)), absl::Minutes(1));
  EXPECT_EQ(CheckpointEvery(std::nullopt, absl::InfiniteDuration()), absl::Minutes(1));
  EXPECT_EQ(CheckpointEvery(absl::Milliseconds(100), absl::Hours(5)), absl::Milliseconds(100));
}

}  // namespace
}  // namespace traind
