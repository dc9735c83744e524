#include "server/plan/planner.h"

#include <string>

#include "tests/server/plan/planner_fixture.h"

namespace traind {
namespace {

// A Job of 5 folds x 20 epochs with 60 s; nothing is running, everything measured.
class PlannerTest : public PlanFixture {
 protected:
  PlannerTest() {
    in_.gangs = 2;
    SetCost(0.1);
    AddPendingFolds();
  }
  void SetCost(double epoch_s, double predict_s = 0.1) {
    in_.cost = FoldCost();
    in_.cost.step_s = epoch_s / 50;
    in_.cost.step_p90_s = in_.cost.step_s;
    in_.cost.steps_per_epoch = 50;
    in_.cost.epoch_s = epoch_s;
    in_.cost.predict_s = predict_s;
  }
  void Run(int fold, double epochs_done, double since) {
    FoldView& view = in_.folds[static_cast<size_t>(fold)];
    view.state = TaskState::kRunning;
    view.started = true;
    view.epochs_done = epochs_done;
    view.cost = in_.cost;
    view.started_at = At(since);
  }
  void Finish(int fold) {
    in_.folds[static_cast<size_t>(fold)].state = TaskState::kDone;
    in_.folds[static_cast<size_t>(fold)].started = true;
  }
};

TEST_F(PlannerTest, APlanThatFitsIsNotCut) {
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(Changes(out), "");
  EXPECT_EQ(out.plan.folds, 5);
  EXPECT_EQ(out.plan.epochs, 20);
  EXPECT_EQ(out.plan.revision, 2);
  EXPECT_EQ(out.plan.parallel_folds, 2);
  // Three waves of 20 epochs and a prediction.
  EXPECT_EQ(*out.plan.estimate, absl::Seconds(6.3));
  EXPECT_EQ(out.estimated_finish, At(7.3));
  EXPECT_TRUE(out.changed);
}

TEST_F(PlannerTest, TheReserveFollowsWhatWasMeasured) {
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(out.plan.reserve, absl::Milliseconds(400));
  EXPECT_EQ(out.train_end, At(59.6));
}

TEST_F(PlannerTest, ADecisionSaysWhatIsExpectedOfIt) {
  SetCost(1);
  const PlanOutput out = MakePlan(in_);
  ASSERT_FALSE(out.decisions.empty());
  EXPECT_EQ(out.decisions[0].effect,
            "done after " + Text(out.estimated_finish - At(0)) + " of 60 s");
}

TEST_F(PlannerTest, FoldsAreCutFirst) {
  SetCost(0.8);  // 48.3 s > 47 s; three folds: 32.2 s
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(Changes(out), "B2 5 folds -> 3 folds; ");
  EXPECT_EQ(out.plan.folds, 3);
  EXPECT_EQ(out.plan.epochs, 20);
}

TEST_F(PlannerTest, ThenEpochsUntilItFits) {
  SetCost(4);
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(out.plan.folds, 3);
  // Two waves; 5 epochs and a prediction each take 40.2 s, 6 would take 48.2.
  EXPECT_EQ(out.plan.epochs, 5);
  EXPECT_EQ(Changes(out), "B2 5 folds -> 3 folds; B2 20 epochs -> 5 epochs; ");
  EXPECT_LE(out.estimated_finish, At(48));
}

TEST_F(PlannerTest, FoldsGoBeforeEpochsThatAModelNeeds) {
  SetCost(6);  // 3 folds would get 3 epochs each, 2 side by side get 7
  PlanOutput out = MakePlan(in_);
  EXPECT_EQ(Changes(out), "B2 5 folds -> 2 folds; B2 20 epochs -> 7 epochs; ");
  EXPECT_LE(out.estimated_finish, At(48));
  // Fewer than run side by side would save nothing.
  SetCost(12);
  EXPECT_EQ(Changes(MakePlan(in_)), "B2 5 folds -> 2 folds; B2 20 epochs -> 3 epochs; ");
  in_.gangs = 1;
  EXPECT_EQ(Changes(MakePlan(in_)), "B2 5 folds -> 1 fold; B2 20 epochs -> 3 epochs; ");
  // Those that have begun stay.
  Run(0, 0, 0.5);
  Run(1, 0, 0.5);
  EXPECT_EQ(MakePlan(in_).plan.folds, 2);
}

TEST_F(PlannerTest, WhatAModelNeedsIsAQuarterOfTheEpochsAskedFor) {
  EXPECT_EQ(UsefulEpochs(1), 1);
  EXPECT_EQ(UsefulEpochs(4), 4);
  EXPECT_EQ(UsefulEpochs(20), 5);
  EXPECT_EQ(UsefulEpochs(21), 6);
  EXPECT_EQ(UsefulEpochs(100), 12);
}

TEST_F(PlannerTest, ThenFoldsThatCannotGetOneEpoch) {
  SetCost(30);
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(out.plan.folds, 2);
  EXPECT_EQ(out.plan.epochs, 1);
}

TEST_F(PlannerTest, OneFoldAndOneEpochStayWhateverTheyCost) {
  SetCost(1000);
  in_.gangs = 1;
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(out.plan.folds, 1);
  EXPECT_EQ(out.plan.epochs, 1);
}

TEST_F(PlannerTest, ACauseTellsWhatWasMeasured) {
  SetCost(0.8);
  const PlanOutput out = MakePlan(in_);
  ASSERT_EQ(out.decisions.size(), 1u);
  EXPECT_EQ(out.decisions[0].cause,
            "16 ms/step x 50 steps x 20 epochs x 5 folds / 2 in parallel with evaluation, "
            "prediction and the 1 s used = 49.3 s > 48 s (80 % of 60 s)");
  EXPECT_EQ(out.decisions[0].at, in_.now);
}

TEST_F(PlannerTest, WithoutADeadlineNothingIsCut) {
  in_.window.deadline = absl::InfiniteFuture();
  SetCost(1000);
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(Changes(out), "");
  EXPECT_EQ(out.plan.folds, 5);
  EXPECT_EQ(out.train_end, absl::InfiniteFuture());
}

TEST_F(PlannerTest, NothingMeasuredNothingCut) {
  in_.cost = FoldCost();
  in_.last = nullptr;
  in_.trigger = Trigger::kTable;
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(Changes(out), "");
  EXPECT_EQ(out.plan.revision, 1);
  EXPECT_FALSE(out.plan.estimate.has_value());
  EXPECT_EQ(out.plan.reserve, absl::Seconds(9));
}

TEST_F(PlannerTest, TimedStepsAloneCutOnlyWhatWouldNotFitAtTwiceTheSpeed) {
  in_.confident = false;
  SetCost(1.4);  // 84.3 s for 5 folds; 42 s at twice the speed
  PlanOutput out = MakePlan(in_);
  EXPECT_EQ(Changes(out), "");
  EXPECT_EQ(*out.plan.estimate, absl::Seconds(84.3));
  SetCost(4);
  out = MakePlan(in_);
  EXPECT_EQ(Changes(out), "B2 5 folds -> 3 folds; B2 20 epochs -> 11 epochs; ");
  in_.confident = true;
  SetCost(1.4);
  EXPECT_NE(Changes(MakePlan(in_)), "");
}

TEST_F(PlannerTest, TimedStepsAloneLeaveAModelItsEpochs) {
  in_.confident = false;
  SetCost(30);  // not even one epoch would fit
  EXPECT_EQ(Changes(MakePlan(in_)), "B2 5 folds -> 2 folds; B2 20 epochs -> 5 epochs; ");
  in_.trigger = Trigger::kFirstFold;
  EXPECT_EQ(Changes(MakePlan(in_)), "B3 5 folds -> 2 folds; B3 20 epochs -> 5 epochs; ");
  spec_.epochs = last_.epochs = 3;
  EXPECT_EQ(Changes(MakePlan(in_)), "B3 5 folds -> 2 folds; ");
}

TEST_F(PlannerTest, OfManyFoldsAsManyStayAsFit) {
  spec_.folds = last_.folds = 40;
  for (int fold = 5; fold < 40; ++fold) {
    in_.folds.push_back({fold, TaskState::kPending, false, 0, {}, absl::InfiniteFuture()});
  }
  SetCost(0.2);  // 4.1 s a fold, two at once: 47 s hold 22
  EXPECT_EQ(Changes(MakePlan(in_)), "B2 40 folds -> 22 folds; ");
}

TEST_F(PlannerTest, ACauseWithoutTimedStepsTellsOfEpochs) {
  SetCost(0.8);
  in_.cost.step_s = 0;
  EXPECT_EQ(MakePlan(in_).decisions.at(0).cause.substr(0, 40),
            "800 ms/epoch x 20 epochs x 5 folds / 2 i");
}

TEST_F(PlannerTest, TheShareIsASpecField) {
  SetCost(0.8);
  spec_.shares.plan = 0.9;
  EXPECT_EQ(Changes(MakePlan(in_)), "");
}

TEST_F(PlannerTest, StartedFoldsAreNeverCut) {
  SetCost(1);
  in_.gangs = 4;
  for (int fold = 0; fold < 4; ++fold) Run(fold, 0, 0.5);
  const PlanOutput out = MakePlan(in_);
  EXPECT_GE(out.plan.folds, 4);
}

TEST_F(PlannerTest, ASlowFirstFoldIsNamedAsTheCause) {
  SetCost(1.5);
  in_.trigger = Trigger::kFirstFold;
  in_.now = At(12.1);
  Run(0, 7, 0.5);
  Run(1, 7, 0.5);
  const PlanOutput out = MakePlan(in_);
  ASSERT_FALSE(out.decisions.empty());
  EXPECT_EQ(out.decisions[0].rule, DecisionRule::kB3);
  EXPECT_EQ(out.decisions[0].cause.substr(0, 52),
            "the first fold has used more than 20 % of 60 s; 30 m");
}

TEST_F(PlannerTest, MidwayEpochsGoBeforeFolds) {
  SetCost(1);
  in_.trigger = Trigger::kFacts;
  in_.now = At(25);
  last_.estimate = absl::Seconds(40);
  Finish(0);
  Finish(1);
  Run(2, 0, 24);
  Run(3, 0, 24);
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(out.plan.folds, 5);
  EXPECT_LT(out.plan.epochs, 20);
  EXPECT_LE(out.estimated_finish, At(60));
}

TEST_F(PlannerTest, NoCutEndsAFoldThatHasDoneMoreThanItLeaves) {
  SetCost(1);
  in_.trigger = Trigger::kFacts;
  in_.now = At(40);
  Run(0, 15.5, 20);
  Run(1, 3, 37);
  EXPECT_GE(MakePlan(in_).plan.epochs, 16);
}

TEST_F(PlannerTest, CutEpochsComeBackWhenTheyFit) {
  SetCost(0.2);
  in_.trigger = Trigger::kFacts;
  in_.now = At(10);
  last_.folds = 3;
  last_.epochs = 10;
  last_.estimate = absl::Seconds(20);
  last_.at = At(2);
  in_.folds.resize(3);
  Run(0, 5, 8);
  Run(1, 5, 8);
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(Changes(out), "B9 10 epochs -> 20 epochs; ");
  EXPECT_EQ(out.plan.epochs, 20);
}

// Past the stop share no running fold gets more, but for one that goes on in time that others left.
TEST_F(PlannerTest, LateEpochsComeBackToAFoldThatGoesOn) {
  SetCost(0.5);
  in_.trigger = Trigger::kFacts;
  in_.now = At(45);
  last_.epochs = 10;
  last_.at = At(40);
  Run(0, 9, 43);
  for (int fold = 1; fold < 5; ++fold) Finish(fold);
  EXPECT_EQ(Changes(MakePlan(in_)), "");
  in_.folds[0].back = true;
  EXPECT_EQ(Changes(MakePlan(in_)), "B9 10 epochs -> 20 epochs; ");
}

// However few are missing: without them the Job would end DEGRADED beside time that is left.
TEST_F(PlannerTest, TheLastEpochsComeBackToo) {
  SetCost(0.2);
  in_.trigger = Trigger::kFacts;
  in_.now = At(10);
  last_.epochs = 17;
  last_.at = At(2);
  Run(0, 9, 8);
  EXPECT_EQ(Changes(MakePlan(in_)), "B9 17 epochs -> 20 epochs; ");
  // A part of them is not worth a new schedule: 11.4 s are left to fold 0, and 0.8 of them count.
  in_.now = At(45);
  in_.trigger = Trigger::kMeasured;
  for (int fold = 1; fold < 5; ++fold) Finish(fold);
  SetCost(0.95);
  Run(0, 7, 38);
  last_.at = At(39);
  EXPECT_EQ(Changes(MakePlan(in_)), "");
}

TEST_F(PlannerTest, CutFoldsComeBackWhenNoneWaitsAndTheyFit) {
  SetCost(0.5);  // 10.1 s a fold
  in_.trigger = Trigger::kFacts;
  in_.now = At(20);
  last_.folds = 3;
  last_.estimate = absl::Seconds(20);
  for (int fold = 0; fold < 3; ++fold) Finish(fold);
  in_.folds[3].state = in_.folds[4].state = TaskState::kDropped;
  PlanOutput out = MakePlan(in_);
  EXPECT_EQ(Changes(out), "B9 3 folds -> 5 folds; ");
  EXPECT_EQ(out.plan.folds, 5);
  EXPECT_EQ(out.estimated_finish, At(30.1));

  in_.gangs = 1;
  in_.now = At(40);  // 20 s are left, 80 % of them: one
  EXPECT_EQ(Changes(MakePlan(in_)), "B9 3 folds -> 4 folds; ");
  in_.now = At(50);  // 80 % of 9.6 s are left
  out = MakePlan(in_);
  EXPECT_EQ(Changes(out), "B9 3 folds -> 4 folds; B9 20 epochs -> 15 epochs; ");
  EXPECT_EQ(out.decisions[1].cause,
            "further folds fit only with 15 epochs: 10 ms/step x 50 steps x 20 epochs x 4 folds / "
            "1 in parallel with evaluation, prediction and the 50 s used = 60.1 s > 57.8 s (80 % "
            "of the 9.7 s left)");
  in_.now = At(57);
  EXPECT_EQ(Changes(MakePlan(in_)), "") << "so few epochs make no model";
  in_.now = At(20);
  in_.may_grow = false;
  EXPECT_EQ(Changes(MakePlan(in_)), "");
}

TEST_F(PlannerTest, FoldsThatEndedEarlyTellHowLongTheOthersTake) {
  spec_.epochs = 1000;
  last_.folds = 3;
  last_.epochs = 300;  // 30 s
  last_.at = At(1);
  in_.trigger = Trigger::kFacts;
  in_.now = At(20);
  for (int fold = 0; fold < 3; ++fold) {
    Run(fold, 40, 1);
    Finish(fold);
  }
  in_.folds[3].state = in_.folds[4].state = TaskState::kDropped;
  // Side by side for 40 to 48 epochs.
  EXPECT_EQ(Changes(MakePlan(in_)), "B9 3 folds -> 5 folds; ");
  last_.folds = 5;
  in_.folds[3].state = TaskState::kPending;
  Run(4, 39, 16);
  in_.now = At(40);
  EXPECT_EQ(Changes(MakePlan(in_)), "");
  // One that goes on for longer may need all that it has.
  Run(4, 60, 16);
  EXPECT_NE(Changes(MakePlan(in_)), "");
  // None tells where the clock has ended one.
  in_.folds[1].state = TaskState::kPartial;
  Run(4, 39, 16);
  EXPECT_NE(Changes(MakePlan(in_)), "");
}

TEST_F(PlannerTest, AfterTooFewEpochsFewerFoldsComeBackAndGetMore) {
  SetCost(2);
  in_.trigger = Trigger::kFacts;
  in_.now = At(20);  // 80 % of the 39.6 s left are 31.7 s
  last_.folds = 2;
  last_.epochs = 1;
  last_.estimate = absl::Seconds(4);
  last_.at = At(5);
  Finish(0);
  Run(1, 0.5, 18);
  for (int fold = 2; fold < 5; ++fold) {
    in_.folds[static_cast<size_t>(fold)].state = TaskState::kDropped;
  }
  EXPECT_EQ(Changes(MakePlan(in_)), "");  // a slot is free, a fold like those is worth little
  Finish(1);
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(Changes(out), "B9 2 folds -> 4 folds; B9 1 epoch -> 15 epochs; ");
  EXPECT_LE(out.estimated_finish, At(52));
  // Where there is no time for more than one, one is better than nothing.
  SetCost(20);
  EXPECT_EQ(Changes(MakePlan(in_)), "B9 2 folds -> 4 folds; ");
}

TEST_F(PlannerTest, FoldsDroppedForLackOfTimeStayDropped) {
  SetCost(0.1);
  in_.trigger = Trigger::kFacts;
  last_.estimate = absl::Seconds(20);
  for (int fold = 0; fold < 4; ++fold) Finish(fold);
  in_.folds[4].state = TaskState::kDropped;  // the Plan still has five
  EXPECT_EQ(Changes(MakePlan(in_)), "");
}

TEST_F(PlannerTest, AFoldForAnIdleGangComesBackRightAfterAChange) {
  SetCost(0.5);  // 10.1 s a fold
  in_.trigger = Trigger::kFacts;
  in_.now = At(20);
  last_.folds = 4;
  last_.estimate = absl::Seconds(20);
  last_.at = At(19.5);
  for (int fold = 0; fold < 3; ++fold) Finish(fold);
  Run(3, 1, 19.5);
  in_.folds[4].state = TaskState::kDropped;
  EXPECT_EQ(Changes(MakePlan(in_)), "B9 4 folds -> 5 folds; ");
  in_.gangs = 1;
  EXPECT_EQ(Changes(MakePlan(in_)), "");
}

TEST_F(PlannerTest, EpochsDoNotComeBackRightAfterAChange) {
  SetCost(0.2);
  in_.trigger = Trigger::kFacts;
  in_.now = At(10);
  last_.epochs = 10;
  last_.estimate = absl::Seconds(20);
  last_.at = At(9);
  Run(0, 4, 8);
  EXPECT_EQ(Changes(MakePlan(in_)), "");
  // But before a fold ends at the epochs of the cut Plan.
  Run(0, 5, 8);
  EXPECT_EQ(Changes(MakePlan(in_)), "B9 10 epochs -> 20 epochs; ");
}

TEST_F(PlannerTest, EpochsComeBackAsSoonAsWholeEpochsWereMeasured) {
  SetCost(0.2);
  in_.now = At(3);
  last_.epochs = 10;
  last_.at = At(0.5);
  Run(0, 2, 1);
  EXPECT_EQ(Changes(MakePlan(in_)), "B9 10 epochs -> 20 epochs; ");
  in_.confident = false;
  EXPECT_EQ(Changes(MakePlan(in_)), "");
}

TEST_F(PlannerTest, PastTheStopShareAPlanThatCannotFinishStopsSoftly) {
  SetCost(2);
  in_.trigger = Trigger::kFacts;
  in_.now = At(43);
  last_.estimate = absl::Seconds(50);
  Finish(0);
  Finish(1);
  Run(2, 3, 40);
  Run(3, 3, 40);
  const PlanOutput out = MakePlan(in_);
  EXPECT_TRUE(out.stopping);
  ASSERT_EQ(out.decisions.size(), 1u);
  EXPECT_EQ(out.decisions[0].rule, DecisionRule::kB5);
  EXPECT_EQ(out.decisions[0].cause,
            "43 s of 60 s used, more than 70 %; the rest of 5 folds x 20 epochs takes until 117 s");
  EXPECT_EQ(out.plan.epochs, 20);
}

TEST_F(PlannerTest, ASoftStopIsDecidedOnce) {
  SetCost(2);
  in_.trigger = Trigger::kFacts;
  in_.now = At(44);
  in_.stopping = true;
  last_.estimate = absl::Seconds(50);
  Run(2, 3, 40);
  Run(3, 3, 40);
  const PlanOutput out = MakePlan(in_);
  EXPECT_TRUE(out.stopping);
  EXPECT_EQ(Changes(out), "");
}

TEST_F(PlannerTest, FoldsWithoutATurnAreDroppedWhenStopping) {
  SetCost(9);
  in_.trigger = Trigger::kFacts;
  in_.now = At(45);
  last_.estimate = absl::Seconds(50);
  Run(0, 2, 10);
  Run(1, 2, 10);
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(out.dropped, (std::vector<int>{2, 3, 4}));
  EXPECT_NE(out.decisions[0].to.find("folds 2, 3, 4 dropped"), std::string::npos);
}

TEST_F(PlannerTest, APlanThatFinishesIsLeftAlonePastTheStopShare) {
  SetCost(0.1);
  in_.trigger = Trigger::kFacts;
  in_.now = At(50);
  last_.estimate = absl::Seconds(50);
  for (int fold = 0; fold < 4; ++fold) Finish(fold);
  Run(4, 10, 48);
  const PlanOutput out = MakePlan(in_);
  EXPECT_FALSE(out.stopping);
  EXPECT_EQ(Changes(out), "");
}

TEST_F(PlannerTest, TheFixedPolicyPlansForTheStopShareAndStopsThere) {
  spec_.policy = Policy::kFixed;
  SetCost(0.65);  // 39.3 s + 1 s; under adaptive it fits
  EXPECT_EQ(MakePlan(in_).train_end, At(42));
  EXPECT_EQ(Changes(MakePlan(in_)), "");
  SetCost(0.72);  // 43.5 s: beyond 42 s of training
  EXPECT_NE(Changes(MakePlan(in_)), "");
  SetCost(0.1);
  in_.now = At(42);
  in_.trigger = Trigger::kFacts;
  Run(0, 5, 41);
  EXPECT_TRUE(MakePlan(in_).stopping);
}

TEST_F(PlannerTest, ALateStartPlansForItsShareOfWhatIsLeft) {
  in_.now = At(50);
  EXPECT_EQ(Changes(MakePlan(in_)), "");  // until 56.3 s of 57.8
  SetCost(0.2);
  const PlanOutput out = MakePlan(in_);
  EXPECT_EQ(out.plan.folds, 3);
  EXPECT_EQ(out.plan.epochs, 14);
  EXPECT_LE(out.estimated_finish, At(57.8));
}

TEST_F(PlannerTest, SharedSlotsMakeItLonger) {
  SetCost(0.5);  // 30.3 s alone
  EXPECT_EQ(Changes(MakePlan(in_)), "");
  in_.sharing = 2;
  EXPECT_NE(Changes(MakePlan(in_)), "");
}

TEST_F(PlannerTest, WavesOfTheMachinesLoadMakeNoNewRevision) {
  const PlanOutput first = MakePlan(in_);
  Plan last = first.plan;
  in_.last = &last;
  in_.trigger = Trigger::kFacts;
  for (const double times : {1.05, 2.0, 0.5}) {
    in_.cost.epoch_s *= times;
    EXPECT_FALSE(MakePlan(in_).changed) << times;
  }
  in_.cost.predict_s = 1;  // 1.3 s and more are held back instead of 0.4 s
  EXPECT_FALSE(MakePlan(in_).changed);
  in_.cost.predict_s = 4;
  EXPECT_TRUE(MakePlan(in_).changed);
}

TEST(TextTest, DurationsReadWell) {
  EXPECT_EQ(Text(absl::Microseconds(120)), "120 us");
  EXPECT_EQ(Text(absl::Milliseconds(25)), "25 ms");
  EXPECT_EQ(Text(absl::Seconds(1.25)), "1.25 s");
  EXPECT_EQ(Text(absl::Seconds(61)), "61 s");
  EXPECT_EQ(Text(absl::Seconds(185)), "3 min 5 s");
  EXPECT_EQ(Text(absl::Hours(2) + absl::Minutes(5)), "2 h 5 min");
  EXPECT_EQ(Text(absl::InfiniteDuration()), "for ever");
}

}  // namespace
}  // namespace traind
