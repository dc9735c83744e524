// Plans whose epochs see a share of the rows: what Ranks are told, what is made of their
// epochs, and what the Prediction is called.
#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

class CoreSubsampleTest : public testing::Test {
 protected:
  // A Job of 3 folds whose first has begun; one epoch of all rows takes 100 s of its 60.
  std::string Begin(bool subsample = true) {
    h_.Attach("w", 1);
    Job job = h_.MakeJob("a");
    job.spec.subsample = subsample;
    const std::string id = h_.SubmitJob(std::move(job));
    h_.PrepareJob(id);
    h_.Say(h_.AttemptOf(id, 1), h_.Started(100));
    return id;
  }
  static facts::Epoch Epoch(double seconds, double rows) {
    facts::Epoch epoch;
    epoch.epoch = 1;
    epoch.epoch_s = seconds;
    epoch.row_share = rows;
    return epoch;
  }

  CoreHarness h_;
};

TEST_F(CoreSubsampleTest, AShareIsToldToTheFoldThatRuns) {
  const std::string id = Begin();
  const Turn turn = h_.Say(h_.AttemptOf(id, 1), h_.Probe(2));  // 200 s an epoch, or 100
  const Plan plan = h_.Stored(id).plans.back();
  EXPECT_EQ(plan.epochs, 1);
  EXPECT_EQ(plan.folds, 1);
  EXPECT_LT(plan.row_share, 0.5);
  EXPECT_GT(plan.row_share, 0.3);
  ASSERT_EQ(turn.replans.size(), 1u);
  EXPECT_EQ(turn.replans[0].row_share, plan.row_share);
  EXPECT_TRUE(turn.replans[0].plan_cut);
}

TEST_F(CoreSubsampleTest, WithoutLeaveEpochsStayWhole) {
  const std::string id = Begin(false);
  h_.Say(h_.AttemptOf(id, 1), h_.Probe(2));
  EXPECT_EQ(h_.Stored(id).plans.back().row_share, 1);
}

// An epoch of all rows would not fit into the whole window; one of its share does.
TEST_F(CoreSubsampleTest, AFoldIsNotHopelessWhereAShareOfAnEpochFits) {
  const std::string id = Begin();
  h_.Say(h_.AttemptOf(id, 1), h_.Probe(2));
  h_.now += absl::Seconds(1);
  h_.Say(h_.AttemptOf(id, 1), h_.Ended(AttemptEndReason::kRankDied));
  h_.Wait(absl::Seconds(2));
  EXPECT_EQ(h_.TaskOf(id, 1).state, TaskState::kRunning);
  EXPECT_EQ(h_.starts.back().row_share, h_.Stored(id).plans.back().row_share);
}

TEST_F(CoreSubsampleTest, AShortEpochIsMeasuredAsOneOfAllRows) {
  const std::string id = Begin();
  h_.Say(h_.AttemptOf(id, 1), h_.Probe(2));
  h_.now += absl::Seconds(4);
  h_.Say(h_.AttemptOf(id, 1), Epoch(4, 0.4));
  EXPECT_DOUBLE_EQ(h_.TaskOf(id, 1).measured.epoch_s, 10);
  EXPECT_EQ(h_.TaskOf(id, 1).row_share, 0.4);
}

TEST_F(CoreSubsampleTest, RowsThatComeBackDoNotMakeAShortenedFoldWhole) {
  const std::string id = Begin();
  h_.Say(h_.AttemptOf(id, 1), h_.Probe(2));
  h_.now += absl::Seconds(2);
  h_.Say(h_.AttemptOf(id, 1), Epoch(0.1, 0.4));  // far faster than its first steps
  h_.Say(h_.AttemptOf(id, 1), h_.Saved(true, true, 0.9, 1));
  h_.Say(h_.AttemptOf(id, 1), h_.Ended());
  h_.Wait(absl::Seconds(5));
  const Job job = h_.Stored(id);
  EXPECT_EQ(job.plans.back().row_share, 1);
  EXPECT_GT(job.plans.back().folds, 1);
  EXPECT_EQ(h_.starts.back().row_share, 1);
  h_.publishes.clear();
  h_.Say(h_.AttemptOf(id, 2), h_.Saved(true, true));
  h_.Publish(id, Quality::kDegraded);
  ASSERT_FALSE(h_.publishes.empty());
  EXPECT_TRUE(h_.publishes.back().request.plan_cut);
}

// The first timed steps were four times slower than those that followed.
TEST_F(CoreSubsampleTest, StepsOfALongEpochAreTrustedBeforeItsEnd) {
  const std::string id = Begin();
  h_.Say(h_.AttemptOf(id, 1), h_.Probe(2));
  ASSERT_LT(h_.Stored(id).plans.back().row_share, 0.5);
  h_.now += absl::Seconds(5);
  facts::Progress progressed;
  progressed.step = 10;
  progressed.epoch = 0.2;
  h_.Say(h_.AttemptOf(id, 1), progressed);
  const Plan plan = h_.Stored(id).plans.back();
  EXPECT_GT(plan.row_share, 0.6);  // 50 s an epoch
  EXPECT_LT(plan.row_share, 1);
  // And slower ones are cut to what fits at their own speed.
  h_.now += absl::Seconds(5);
  progressed.step = 12;
  h_.Say(h_.AttemptOf(id, 1), progressed);
  EXPECT_LT(h_.Stored(id).plans.back().row_share, plan.row_share);
}

// Its Worker has published by itself and is lost: of its epochs nothing was heard.
TEST_F(CoreSubsampleTest, AFoldThatEndedOutOfReachMayHaveBeenShortened) {
  const std::string id = Begin();
  h_.Say(h_.AttemptOf(id, 1), h_.Probe(2));
  PublishedPrediction prediction = h_.Prediction(7, Quality::kDegraded, h_.now);
  Member& member = prediction.members.emplace_back();
  member.attempt = h_.AttemptOf(id, 1);
  member.complete = true;
  member.epochs_done = 1;
  h_.Step({Published{id, prediction, false}});
  h_.Say(h_.AttemptOf(id, 1), h_.Ended(AttemptEndReason::kWorkerLost));
  EXPECT_EQ(h_.TaskOf(id, 1).state, TaskState::kDone);
  EXPECT_EQ(h_.TaskOf(id, 1).row_share, h_.Stored(id).plans.back().row_share);
  EXPECT_LT(h_.TaskOf(id, 1).row_share, 1);
}

// It has read the data, trains no fold, and has published what others trained while traind was away
// until after the deadline.
TEST_F(CoreSubsampleTest, AWorkerThatWasNotToldOfACutHasNotAnsweredInFull) {
  h_.Attach("w", 1);
  Job made = h_.MakeJob("a", 1);
  made.spec.subsample = true;
  made.spec.epochs = 1;
  const std::string id = h_.SubmitJob(std::move(made));
  h_.PrepareJob(id);
  const int64_t attempt = h_.AttemptOf(id, 1);
  h_.Say(attempt, h_.Started(100));
  h_.Say(attempt, h_.Probe(2));
  h_.now += absl::Seconds(4);
  h_.Say(attempt, Epoch(4, 0.4));
  PublishedPrediction prediction = h_.Prediction(7, Quality::kFull, h_.now);
  Member& member = prediction.members.emplace_back();
  member.fold = 0;
  member.attempt = attempt;
  member.complete = true;
  member.epochs_done = 1;
  h_.now = h_.Stored(id).deadline + absl::Seconds(1);
  h_.Crash();
  h_.Step({Published{id, prediction, true}});
  h_.Wait(absl::Seconds(10));
  EXPECT_EQ(h_.State(id), JobState::kSucceeded);
  EXPECT_EQ(h_.Stored(id).prediction->number, 7);
  EXPECT_EQ(h_.Stored(id).prediction->quality, Quality::kDegraded);
}

TEST_F(CoreSubsampleTest, TheShareOutlivesACrash) {
  const std::string id = Begin();
  h_.Say(h_.AttemptOf(id, 1), h_.Probe(2));
  const double rows = h_.Stored(id).plans.back().row_share;
  h_.Crash();
  const Turn turn = h_.Attach("w", 1, {h_.AttemptOf(id, 1)});
  EXPECT_EQ(h_.Stored(id).plans.back().row_share, rows);
  for (const ReplanCommand& replan : turn.replans) EXPECT_EQ(replan.row_share, rows);
}

}  // namespace
}  // namespace traind
