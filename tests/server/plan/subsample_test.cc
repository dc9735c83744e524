// Shares of the training rows: the last thing that a Plan cuts, and the first that comes back.
#include <gtest/gtest.h>

#include <string>

#include "server/plan/budget_rules.h"
#include "tests/server/plan/planner_fixture.h"

namespace traind {
namespace {

// A Job of 5 folds x 20 epochs with 60 s that may subsample; one gang, one fold that has just
// begun, everything measured.
class SubsampleTest : public PlanFixture {
 protected:
  SubsampleTest() {
    spec_.subsample = true;
    AddPendingFolds();
    in_.folds[0].state = TaskState::kRunning;
    in_.folds[0].started = true;
    in_.folds[0].started_at = At(0.5);
  }
  // An epoch of 100 steps, its evaluation, and a prediction.
  void SetCost(double train_s, double evaluate_s = 0) {
    in_.cost = FoldCost();
    in_.cost.step_s = in_.cost.step_p90_s = train_s / 100;
    in_.cost.steps_per_epoch = 100;
    in_.cost.epoch_s = train_s + evaluate_s;
    in_.cost.evaluate_s = evaluate_s;
    in_.cost.predict_s = 0.1;
    in_.folds[0].cost = in_.cost;
  }
  void CutTo(int folds, double rows) {
    last_.folds = folds;
    last_.epochs = 1;
    last_.row_share = rows;
  }
};

TEST_F(SubsampleTest, RowsGoAfterFoldsAndEpochs) {
  SetCost(4);
  EXPECT_EQ(MakePlan(in_).plan.row_share, 1) << "epochs suffice";
  SetCost(100);  // 48 s are the plan's: 46.9 s for rows
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(Changes(out),
            "B2 5 folds -> 1 fold; B2 20 epochs -> 1 epoch; "
            "B2 100 % of the rows -> 46 % of the rows; ");
  EXPECT_EQ(out.plan.row_share, 0.46);
  EXPECT_LE(out.estimated_finish, At(48));
  EXPECT_TRUE(out.changed);
  EXPECT_NE(out.decisions[2].cause.find("x 100 steps x 1 epoch x 1 fold"), std::string::npos)
      << out.decisions[2].cause;
}

TEST_F(SubsampleTest, WithoutLeaveNoRowGoes) {
  spec_.subsample = false;
  SetCost(100);
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(Changes(out), "B2 5 folds -> 1 fold; B2 20 epochs -> 1 epoch; ");
  EXPECT_EQ(out.plan.row_share, 1);
}

TEST_F(SubsampleTest, ATwentiethOfTheRowsStays) {
  SetCost(100'000);
  EXPECT_EQ(MakePlan(in_).plan.row_share, 0.05);
}

TEST_F(SubsampleTest, AStepStays) {
  SetCost(1000);
  in_.cost.steps_per_epoch = 4;
  in_.folds[0].cost = in_.cost;
  EXPECT_EQ(MakePlan(in_).plan.row_share, 0.25);
  in_.cost.steps_per_epoch = 1;
  EXPECT_EQ(MakePlan(in_).plan.row_share, 1);
}

TEST_F(SubsampleTest, EvaluationIsNotShortened) {
  SetCost(50, 30);  // 16.9 s for rows
  EXPECT_EQ(MakePlan(in_).plan.row_share, 0.33);
}

// Timed steps mislead: only what would not fit at twice their speed either is cut.
TEST_F(SubsampleTest, TimedStepsAloneCutRowsHalfAsMuch) {
  in_.confident = false;
  SetCost(60);  // one epoch fits then, and models keep what they need until more is known
  EXPECT_EQ(MakePlan(in_).plan.row_share, 1);
  SetCost(200);
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(out.plan.epochs, 1);
  EXPECT_EQ(out.plan.row_share, 0.46);
}

TEST_F(SubsampleTest, RowsThatWereSeenAreNotCut) {
  SetCost(100);
  CutTo(1, 1);
  in_.folds[0].epochs_done = 0.7;
  in_.now = At(52);
  in_.trigger = Trigger::kFacts;  // 30 s more do not fit, the last prediction does
  for (size_t i = 1; i < in_.folds.size(); ++i) in_.folds[i].state = TaskState::kDropped;
  in_.now = At(30);
  const PlanOutput out = MakePlan(in_);
  // 100 % would end at 60.1 s; prediction has to begin before. With 90 % it ends at 50.1 s.
  EXPECT_EQ(Changes(out), "B2 100 % of the rows -> 90 % of the rows; ");
}

TEST_F(SubsampleTest, LateAShorterEpochIsBetterThanAPartOfOne) {
  SetCost(100);
  CutTo(1, 0.5);
  in_.folds[0].epochs_done = 0.8;  // 40 of 50 s, 10 are left, and 8 or so have time
  for (size_t i = 1; i < in_.folds.size(); ++i) in_.folds[i].state = TaskState::kDropped;
  in_.now = At(50);
  in_.trigger = Trigger::kFacts;
  PlanOutput out = MakePlan(in_);
  EXPECT_EQ(Changes(out), "B2 50 % of the rows -> 45 % of the rows; ");
  EXPECT_FALSE(out.stopping);
  in_.stopping = true;
  EXPECT_EQ(MakePlan(in_).plan.row_share, 0.5) << "it stops already";
  in_.stopping = false;
  spec_.policy = Policy::kFixed;
  EXPECT_TRUE(MakePlan(in_).stopping) << "in any case, by that policy";
}

TEST_F(SubsampleTest, WhatWasSeenOfALongerEpochCountsAsMoreOfAShorterOne) {
  EXPECT_DOUBLE_EQ(EpochsLeft(1, 0.25, 1, 1), 0.75);
  EXPECT_DOUBLE_EQ(EpochsLeft(1, 0.25, 1, 0.5), 0.5);
  EXPECT_DOUBLE_EQ(EpochsLeft(1, 0.5, 0.5, 1), 0.75);
  EXPECT_DOUBLE_EQ(EpochsLeft(1, 0.75, 1, 0.5), 0);
  EXPECT_DOUBLE_EQ(EpochsLeft(3, 1.5, 0.5, 0.5), 1.5);
  EXPECT_DOUBLE_EQ(EpochsLeft(1, 2, 1, 1), 0);
}

TEST_F(SubsampleTest, RowsComeBackBeforeEpochs) {
  SetCost(10);
  CutTo(2, 0.2);
  in_.folds[0].state = TaskState::kDone;
  in_.folds[1].state = TaskState::kRunning;
  in_.folds[1].started = true;
  in_.folds[1].cost = in_.cost;
  in_.trigger = Trigger::kFacts;
  for (size_t i = 2; i < in_.folds.size(); ++i) in_.folds[i].state = TaskState::kDropped;
  in_.now = At(20);  // 31 s of what is left are the plan's
  EXPECT_EQ(Changes(MakePlan(in_)), "B9 20 % of the rows -> 100 % of the rows; ")
      << "its first epoch still runs";
  in_.folds[1].epochs_done = 1;
  in_.last = &last_;
  EXPECT_EQ(Changes(MakePlan(in_)),
            "B9 20 % of the rows -> 100 % of the rows; "
            "B9 1 epoch -> 4 epochs; ");
  SetCost(50);
  in_.folds[1].cost = in_.cost;
  in_.folds[1].epochs_done = 0.5;  // a tenth of the rows
  EXPECT_EQ(Changes(MakePlan(in_)), "B9 20 % of the rows -> 72 % of the rows; ");
}

TEST_F(SubsampleTest, AFewRowsMoreAreNotWorthANewPlan) {
  SetCost(100);
  CutTo(1, 0.44);
  in_.trigger = Trigger::kFacts;
  in_.now = At(5);
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(out.plan.row_share, 0.44);
  EXPECT_EQ(Changes(out), "");
}

TEST_F(SubsampleTest, FoldsThatComeBackBringRowsWithThem) {
  SetCost(10);
  CutTo(1, 0.2);
  in_.folds[0].state = TaskState::kDone;
  for (size_t i = 1; i < in_.folds.size(); ++i) in_.folds[i].state = TaskState::kDropped;
  in_.trigger = Trigger::kFacts;
  in_.now = At(20);
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(Changes(out),
            "B9 1 fold -> 2 folds; B9 20 % of the rows -> 100 % of the rows; "
            "B9 1 epoch -> 3 epochs; ");
}

TEST_F(SubsampleTest, APreviewTellsTheShare) {
  spec_.budget = absl::Seconds(60);
  Assumptions assumptions;
  assumptions.measured.step_s = 1;
  assumptions.measured.steps_per_epoch = 100;
  const Preview preview = PreviewPlan(spec_, assumptions, At(0));
  EXPECT_LT(preview.plan.row_share, 0.5);
  EXPECT_NEAR(preview.device_s_p50, 100 * preview.plan.row_share + 0.5, 0.01);
  ASSERT_FALSE(preview.cuts.empty());
  EXPECT_EQ(preview.cuts.back().from, "100 % of the rows");
}

}  // namespace
}  // namespace traind
