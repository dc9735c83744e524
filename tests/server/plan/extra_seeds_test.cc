// Extra seeds: models of a fold besides its first, in the time that no fold can use (B9).
#include <gtest/gtest.h>

#include <string>

#include "tests/server/plan/planner_fixture.h"

namespace traind {
namespace {

// A Job of 5 folds x 20 epochs of 0.1 s with up to 3 models each, 60 s and 2 gangs. All
// folds were done early, after 10 epochs, but for what a test says.
class ExtraSeedsTest : public PlanFixture {
 protected:
  ExtraSeedsTest() {
    spec_.seeds = 3;
    in_.now = At(10);
    in_.trigger = Trigger::kFacts;
    in_.gangs = 2;
    in_.cost.step_s = 0.002;
    in_.cost.steps_per_epoch = 50;
    in_.cost.epoch_s = 0.1;
    in_.cost.predict_s = 0.1;
    for (int fold = 0; fold < spec_.folds; ++fold) Add(fold, 0, TaskState::kDone, 10);
    last_.models = spec_.folds;
    last_.at = At(1);
  }
  void Add(int fold, int seed, TaskState state, double epochs_done = 0) {
    FoldView view;
    view.fold = fold;
    view.seed = seed;
    view.state = state;
    view.started = state != TaskState::kPending && state != TaskState::kDropped;
    view.answers = state == TaskState::kDone || state == TaskState::kPartial;
    view.epochs_done = epochs_done;
    if (state == TaskState::kRunning) {
      view.cost = in_.cost;
      view.started_at = At(9);
    }
    in_.folds.push_back(view);
  }
  FoldView& Fold(int fold) { return in_.folds[static_cast<size_t>(fold)]; }
  void Runs(int fold, double epochs_done) {
    Fold(fold).state = TaskState::kRunning;
    Fold(fold).answers = false;
    Fold(fold).epochs_done = epochs_done;
    Fold(fold).cost = in_.cost;
    Fold(fold).started_at = At(9);
  }
};

TEST_F(ExtraSeedsTest, ComeWhenThereIsTimeForThem) {
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(Changes(out), "B9 5 models -> 15 models; ");
  EXPECT_EQ(out.extra_seeds, 10);
  EXPECT_EQ(out.plan.models, 15);
  EXPECT_EQ(out.plan.folds, 5);
  EXPECT_TRUE(out.changed);
  EXPECT_EQ(out.decisions[0].cause,
            "100 ms/epoch and 10 epochs a model now; 10 s of 60 s used, and no fold can use more");
  EXPECT_FALSE(out.decisions[0].effect.empty());
}

TEST_F(ExtraSeedsTest, AreAsManyAsFitTheShareOfWhatIsLeft) {
  // 0.8 of the 49.7 s left are 39.8 s: three waves of 10 epochs and a prediction on each gang.
  in_.cost.epoch_s = 1.2;
  EXPECT_EQ(Changes(MakePlan(in_)), "B9 5 models -> 11 models; ");
}

TEST_F(ExtraSeedsTest, OneSeedAsksForNone) {
  spec_.seeds = 1;
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(Changes(out), "");
  EXPECT_EQ(out.plan.models, 5);
}

TEST_F(ExtraSeedsTest, AreExpectedToTakeWhatTheLongestFoldTook) {
  in_.cost.epoch_s = 2;
  EXPECT_EQ(MakePlan(in_).extra_seeds, 2);
  Fold(3).epochs_done = 20;
  EXPECT_EQ(MakePlan(in_).extra_seeds, 0) << "40 s of 39.8";
  Fold(3).epochs_done = 10;
  Fold(3).state = TaskState::kPartial;  // stopped by the clock: it says nothing of patience
  EXPECT_EQ(MakePlan(in_).extra_seeds, 0);
}

TEST_F(ExtraSeedsTest, WaitForFoldsThatWait) {
  Fold(4).state = TaskState::kPending;
  Fold(4).started = Fold(4).answers = false;
  EXPECT_EQ(Changes(MakePlan(in_)), "");
  // Also for one that pauses before a retry.
  Fold(4).started = true;
  EXPECT_EQ(Changes(MakePlan(in_)), "");
}

TEST_F(ExtraSeedsTest, FoldsThatWereCutComeBackBeforeThem) {
  last_.folds = last_.models = 3;
  for (const int fold : {3, 4}) {
    Fold(fold).state = TaskState::kDropped;
    Fold(fold).started = Fold(fold).answers = false;
  }
  EXPECT_EQ(Changes(MakePlan(in_)), "B9 3 folds -> 5 folds; ");
}

TEST_F(ExtraSeedsTest, NoneComesWhileAFoldThatWasCutCannotComeBack) {
  last_.folds = last_.models = 4;
  Fold(4).state = TaskState::kDropped;
  Fold(4).started = Fold(4).answers = false;
  Fold(4).epochs_done = 0;
  in_.cost.epoch_s = 5;  // its like took 10 epochs; fewer, but enough for a model, have time
  EXPECT_EQ(Changes(MakePlan(in_)), "B9 4 folds -> 5 folds; B9 20 epochs -> 7 epochs; ");
  in_.cost.epoch_s = 20;
  EXPECT_EQ(Changes(MakePlan(in_)), "");
}

TEST_F(ExtraSeedsTest, EpochsThatWereCutComeBackBeforeThem) {
  last_.epochs = 12;
  Runs(4, 2);
  EXPECT_EQ(Changes(MakePlan(in_)), "B9 12 epochs -> 20 epochs; ");
  // Too soon after the last Plan for that; they wait all the same.
  last_.at = At(9.5);
  EXPECT_EQ(Changes(MakePlan(in_)), "");
  // Once the fold is over, its epochs cannot come back.
  Fold(4).state = TaskState::kDone;
  Fold(4).epochs_done = 12;
  Fold(4).answers = true;
  EXPECT_EQ(Changes(MakePlan(in_)), "B9 5 models -> 15 models; ");
}

TEST_F(ExtraSeedsTest, ComeBesideTheLastFoldOnAnIdleGang) {
  Runs(4, 5);
  EXPECT_EQ(MakePlan(in_).extra_seeds, 10);
  Runs(3, 5);
  EXPECT_EQ(MakePlan(in_).extra_seeds, 0) << "no gang is idle";
}

TEST_F(ExtraSeedsTest, ALongFoldDoesNotHoldUpAnIdleGang) {
  in_.cost.epoch_s = 2;
  Runs(4, 0);  // 40 s by its epochs; its like took 20 s
  EXPECT_EQ(MakePlan(in_).extra_seeds, 1);
}

TEST_F(ExtraSeedsTest, NoneComesLateInTheWindow) {
  in_.cost.epoch_s = 0.5;
  in_.now = At(52);  // 6.1 s of the share are left, a model takes 5.1
  EXPECT_EQ(MakePlan(in_).extra_seeds, 2);
  in_.now = At(54);
  EXPECT_EQ(Changes(MakePlan(in_)), "");
}

TEST_F(ExtraSeedsTest, TheFixedPolicyStartsNonePastTheStopShare) {
  spec_.policy = Policy::kFixed;
  EXPECT_GT(MakePlan(in_).extra_seeds, 0);
  in_.now = At(42);
  EXPECT_EQ(Changes(MakePlan(in_)), "");
}

TEST_F(ExtraSeedsTest, NoneComesAfterFinishOrAStop) {
  in_.may_grow = false;
  EXPECT_EQ(Changes(MakePlan(in_)), "");
  in_.may_grow = true;
  in_.stopping = true;
  EXPECT_EQ(Changes(MakePlan(in_)), "");
}

TEST_F(ExtraSeedsTest, NoneComesWhereNoFoldHasAModel) {
  for (FoldView& fold : in_.folds) {
    fold.state = TaskState::kFailed;
    fold.answers = false;
  }
  EXPECT_EQ(Changes(MakePlan(in_)), "");
}

TEST_F(ExtraSeedsTest, WithoutADeadlineAllComeAndNobodyDecidesThat) {
  in_.window.deadline = absl::InfiniteFuture();
  Runs(4, 5);
  Runs(3, 5);
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(Changes(out), "");
  EXPECT_EQ(out.extra_seeds, 10);
  EXPECT_EQ(out.plan.models, 15);
}

TEST_F(ExtraSeedsTest, ThoseThatWaitAreGivenBackWhereTimeGetsShort) {
  Add(0, 1, TaskState::kRunning, 5);
  Add(1, 1, TaskState::kRunning, 5);
  Add(2, 1, TaskState::kPending);
  Add(3, 1, TaskState::kPending);
  Add(4, 1, TaskState::kPending);
  last_.models = 10;
  in_.now = At(30);
  EXPECT_EQ(Changes(MakePlan(in_)), "");
  // 5 more epochs of 1.5 s, then two models of 15 s; the third would end at 67 s.
  in_.cost.epoch_s = 1.5;
  for (FoldView& fold : in_.folds) fold.cost.epoch_s = fold.cost.known() ? 1.5 : 0;
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(Changes(out), "B9 10 models -> 9 models; ");
  EXPECT_EQ(out.extra_seeds, 4);
  EXPECT_FALSE(out.stopping) << "no fold is missing anything";
}

TEST_F(ExtraSeedsTest, AFoldThatIsCutTakesThoseThatWaitWithIt) {
  Runs(4, 1);
  Add(0, 1, TaskState::kRunning, 1);
  Add(1, 1, TaskState::kPending);
  last_.models = 7;
  in_.cost.epoch_s = 6;  // its like took 10 epochs
  Fold(4).cost.epoch_s = 6;
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(Changes(out), "B2 20 epochs -> 7 epochs; B9 7 models -> 6 models; ");
}

TEST_F(ExtraSeedsTest, FoldsLoseNothingToExtraSeedsThatRun) {
  Runs(4, 15);
  Add(0, 1, TaskState::kRunning, 1);
  last_.models = 6;
  in_.folds.back().cost.epoch_s = 100;
  EXPECT_EQ(Changes(MakePlan(in_)), "");
  in_.now = At(45);
  Fold(4).epochs_done = 19;
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(Changes(out), "");
  EXPECT_FALSE(out.stopping);
}

TEST_F(ExtraSeedsTest, WhereNothingWasMeasuredOneForEachGangTells) {
  in_.cost = FoldCost();  // all folds were taken over from another Job
  EXPECT_EQ(Changes(MakePlan(in_)), "B9 5 models -> 7 models; ");
}

TEST_F(ExtraSeedsTest, APreviewWithoutADeadlineCountsAllModels) {
  Assumptions a;
  a.measured.step_s = 0.002;
  a.measured.steps_per_epoch = 50;
  const Preview three = PreviewPlan(spec_, a, At(0));
  spec_.seeds = 1;
  const Preview one = PreviewPlan(spec_, a, At(0));
  EXPECT_NEAR(three.device_s_p50, 3 * one.device_s_p50, 1e-9);
  EXPECT_GT(three.estimate_p50, 2.5 * one.estimate_p50);
}

}  // namespace
}  // namespace traind
