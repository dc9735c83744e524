// Plans of boosted trees, which answer at any time and mostly stop early.
#include "tests/server/plan/planner_fixture.h"

namespace traind {
namespace {

// A Job of 5 folds x 100 epochs with 60 s on two gangs, of which nothing has run.
class TreesPlanTest : public PlanFixture {
 protected:
  TreesPlanTest() {
    spec_.epochs = 100;
    spec_.trials = {{"", "lightgbm", 100, 25}};
    last_.epochs = 100;
    in_.gangs = 2;
    AddPendingFolds();
  }
  PlanOutput PlanWith(double epoch_s) {
    in_.cost.epoch_s = epoch_s;
    in_.cost.predict_s = 0.1;
    return MakePlan(in_);
  }
  void Set(size_t fold, TaskState state, double epochs) {
    in_.folds[fold].state = state;
    in_.folds[fold].started = true;
    in_.folds[fold].epochs_done = epochs;
  }
};

TEST_F(TreesPlanTest, EarlyStoppingIsCountedOn) {
  const PlanOutput out = PlanWith(0.2);  // all rounds would take 60.3 s
  EXPECT_EQ(Changes(out), "");
  EXPECT_EQ(*out.plan.estimate, absl::Seconds(3 * (35 * 0.2 + 0.1)));
}

TEST_F(TreesPlanTest, WithoutEarlyStoppingAllRoundsCount) {
  spec_.trials[0].patience = 0;
  EXPECT_EQ(*PlanWith(0.2).plan.estimate, absl::Seconds(3 * (100 * 0.2 + 0.1)));
}

TEST_F(TreesPlanTest, EpochsAreNeverCut) {
  const PlanOutput out = PlanWith(1);  // 105 s are expected, and 12 epochs of each fold take 36 s
  EXPECT_EQ(Changes(out), "");
  EXPECT_EQ(out.plan.folds, 5);
  EXPECT_EQ(out.plan.epochs, 100);
}

TEST_F(TreesPlanTest, FoldsAreCutWhereTheirSharesAreTooShort) {
  EXPECT_EQ(Changes(PlanWith(2)), "B2 5 folds -> 2 folds; ");
  in_.confident = false;  // the first rounds are slow
  EXPECT_EQ(Changes(PlanWith(2)), "");
}

TEST_F(TreesPlanTest, SpeedThatSwingsChangesNothing) {
  in_.trigger = Trigger::kFacts;
  in_.now = At(5);
  Set(0, TaskState::kRunning, 3);
  Set(1, TaskState::kRunning, 2);
  for (const double epoch_s : {0.2, 0.6, 0.15, 1.0, 0.3}) {
    EXPECT_EQ(Changes(PlanWith(epoch_s)), "") << epoch_s;
  }
}

TEST_F(TreesPlanTest, FoldsThatAreDoneTellWhatOthersTake) {
  in_.trigger = Trigger::kFacts;
  for (const size_t fold : {0, 1, 2}) Set(fold, TaskState::kDone, 20);
  // Two side by side, with a fifth more epochs than the longest.
  EXPECT_EQ(*PlanWith(0.2).plan.estimate, absl::Seconds(24 * 0.2 + 0.1));
  Set(3, TaskState::kRunning, 40);  // it goes on for half as long again
  EXPECT_EQ(*PlanWith(0.2).plan.estimate, absl::Seconds(60 * 0.2 + 0.1));
}

TEST_F(TreesPlanTest, FoldsThatWereCutComeBackWithAllTheirEpochs) {
  in_.trigger = Trigger::kFacts;
  last_.folds = 3;
  for (const size_t fold : {0, 1, 2}) Set(fold, TaskState::kDone, 20);
  for (const size_t fold : {3, 4}) in_.folds[fold].state = TaskState::kDropped;
  const PlanOutput out = PlanWith(0.2);
  EXPECT_EQ(Changes(out), "B9 3 folds -> 5 folds; ");
  EXPECT_EQ(out.plan.epochs, 100);
}

}  // namespace
}  // namespace traind
