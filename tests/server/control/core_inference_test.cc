// Jobs that train nothing: one task with the models of another Job.
#include <gtest/gtest.h>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

Job MakeInference(const std::string& request, TaskKind kind) {
  Job job = CoreHarness::MakeJob(request, 0);
  job.spec.epochs = 0;
  job.tasks.resize(1);
  job.tasks[0].kind = kind;
  if (kind == TaskKind::kServe) {
    job.spec.has_test = false;
    job.spec.budget.reset();
  }
  return job;
}

// A Worker whose one slot is taken: predictions take none.
class CoreInferenceTest : public ::testing::Test {
 protected:
  CoreInferenceTest() {
    house.Attach("w", 1);
    const std::string training = house.SubmitJob(CoreHarness::MakeJob("training"));
    house.PrepareJob(training);
    EXPECT_EQ(house.State(training), JobState::kRunning);
  }
  // Tells traind of a Prediction that the Rank has published.
  Turn HearOfPrediction(const std::string& job, Quality quality) {
    return house.Step(
        {Published{job, CoreHarness::Prediction(++house.number, quality, house.now), true}});
  }
  CoreHarness house;
};

TEST_F(CoreInferenceTest, APredictionStartsAtOnceWithoutASlotAndSucceedsWithItsAnswer) {
  const std::string job = house.SubmitJob(MakeInference("p", TaskKind::kPredict));
  EXPECT_EQ(house.State(job), JobState::kRunning);
  ASSERT_FALSE(house.starts.empty());
  const StartCommand& start = house.starts.back();
  EXPECT_EQ(start.kind, TaskKind::kPredict);
  EXPECT_TRUE(start.slots.empty());
  EXPECT_EQ(start.deadline, house.now + absl::Seconds(60));
  const int64_t attempt = house.AttemptOf(job, 0);
  facts::TableReady rows;
  rows.test_rows = 7;
  rows.warnings = {"a column is ignored"};
  house.Say(attempt, rows);
  house.Say(attempt, rows);
  HearOfPrediction(job, Quality::kFull);
  house.Say(attempt, CoreHarness::Ended());
  const Job stored = house.Stored(job);
  EXPECT_EQ(stored.state, JobState::kSucceeded);
  EXPECT_EQ(stored.end_reason, JobEndReason::kCompleted);
  EXPECT_EQ(stored.prediction->quality, Quality::kFull);
  EXPECT_EQ(stored.table.test_rows, 7);
  EXPECT_EQ(stored.warnings.size(), 1u);
  EXPECT_TRUE(stored.plans.empty());
}

TEST_F(CoreInferenceTest, ALostRankIsReplacedAndAStaleOneMayNotSpeak) {
  const std::string job = house.SubmitJob(MakeInference("p", TaskKind::kPredict));
  const int64_t first = house.AttemptOf(job, 0);
  house.Say(first, CoreHarness::Ended(AttemptEndReason::kRankDied, "signal 9"));
  EXPECT_EQ(house.State(job), JobState::kQueued);
  house.Wait(absl::Seconds(5));
  const int64_t second = house.AttemptOf(job, 0);
  EXPECT_GT(second, first);
  EXPECT_EQ(house.State(job), JobState::kRunning);
  HearOfPrediction(job, Quality::kFull);
  house.Say(first, CoreHarness::Ended());
  EXPECT_EQ(house.State(job), JobState::kRunning);
  house.Say(second, CoreHarness::Ended());
  EXPECT_EQ(house.State(job), JobState::kSucceeded);
}

TEST_F(CoreInferenceTest, WhatIsWrongWithTheDataEndsItAndNothingIsTriedAgain) {
  const std::string job = house.SubmitJob(MakeInference("p", TaskKind::kPredict));
  house.Say(house.AttemptOf(job, 0),
            CoreHarness::Ended(AttemptEndReason::kDataError, "later.csv: column 'x' is missing"));
  const Job stored = house.Stored(job);
  EXPECT_EQ(stored.state, JobState::kFailed);
  EXPECT_EQ(stored.end_reason, JobEndReason::kDataError);
  EXPECT_EQ(stored.end_message, "later.csv: column 'x' is missing");
}

TEST_F(CoreInferenceTest, AtTheDeadlineAPredictionOfSomeModelsIsTheAnswerAndNoneIsAFailure) {
  const std::string some = house.SubmitJob(MakeInference("some", TaskKind::kPredict));
  const std::string none = house.SubmitJob(MakeInference("none", TaskKind::kPredict));
  HearOfPrediction(some, Quality::kDegraded);
  house.Wait(absl::Seconds(61));
  EXPECT_EQ(house.State(some), JobState::kSucceeded);
  EXPECT_EQ(house.State(none), JobState::kFailed);
  for (const std::string& job : {some, none}) {
    const Job stored = house.Stored(job);
    EXPECT_EQ(stored.end_reason, JobEndReason::kBudgetReached);
    EXPECT_LE(stored.finished_at, stored.deadline);
    EXPECT_NE(stored.attempts.back().ended_at, absl::InfiniteFuture());
  }
}

TEST_F(CoreInferenceTest, AfterACrashTheTaskIsAdoptedWithItsWorker) {
  const std::string job = house.SubmitJob(MakeInference("p", TaskKind::kPredict));
  const int64_t attempt = house.AttemptOf(job, 0);
  house.Crash();
  house.Attach("w", 1, {attempt});
  EXPECT_EQ(house.AttemptOf(job, 0), attempt);
  HearOfPrediction(job, Quality::kFull);
  house.Say(attempt, CoreHarness::Ended());
  EXPECT_EQ(house.State(job), JobState::kSucceeded);
}

TEST_F(CoreInferenceTest, AServingJobEndsWellWhenIdleOrAskedToAndCannotBePaused) {
  const std::string idle = house.SubmitJob(MakeInference("idle", TaskKind::kServe));
  house.Say(house.AttemptOf(idle, 0), CoreHarness::Ended());
  EXPECT_EQ(house.State(idle), JobState::kSucceeded);

  const std::string asked = house.SubmitJob(MakeInference("asked", TaskKind::kServe));
  Turn paused = house.Step({Pause{1, asked}});
  EXPECT_EQ(paused.replies[0].status.code(), absl::StatusCode::kFailedPrecondition);
  Turn finished = house.Step({Finish{2, asked}});
  ASSERT_EQ(finished.stops.size(), 1u);
  EXPECT_EQ(finished.stops[0].mode, StopMode::kPredict);
  house.Say(house.AttemptOf(asked, 0),
            CoreHarness::Ended(AttemptEndReason::kFinishedByUser, "the user asked to finish"));
  EXPECT_EQ(house.State(asked), JobState::kSucceeded);
  EXPECT_EQ(house.Stored(asked).end_reason, JobEndReason::kFinishedByUser);
}

// What tells of its Prediction is with the Worker.
TEST_F(CoreInferenceTest, AFinishAsksTheDiskForTheAnswerOfARankThatIsGone) {
  const std::string there = house.SubmitJob(MakeInference("there", TaskKind::kPredict));
  const std::string none = house.SubmitJob(MakeInference("none", TaskKind::kPredict));
  for (const std::string& job : {there, none}) {
    house.Step({Finish{1, job}});
    house.publishes.clear();
    house.Say(house.AttemptOf(job, 0), CoreHarness::Ended(AttemptEndReason::kRankDied, "signal 9"));
    ASSERT_EQ(house.publishes.size(), 1u);
    EXPECT_EQ(house.publishes[0].job, job);
    EXPECT_TRUE(house.publishes[0].request.table.empty());
    EXPECT_NE(house.State(job), JobState::kFailed);
  }
  house.Publish(there, Quality::kDegraded);
  house.Step({Published{none, absl::NotFoundError("no prediction stands"), false}});
  EXPECT_EQ(house.Stored(there).state, JobState::kSucceeded);
  EXPECT_EQ(house.Stored(none).state, JobState::kFailed);
  for (const std::string& job : {there, none}) {
    EXPECT_EQ(house.Stored(job).end_reason, JobEndReason::kFinishedByUser);
    EXPECT_EQ(house.Stored(job).attempts.size(), 1u);
  }
}

TEST_F(CoreInferenceTest, AFinishDoesNotWaitForADiskThatSaysNothing) {
  const std::string job = house.SubmitJob(MakeInference("p", TaskKind::kPredict));
  house.Say(house.AttemptOf(job, 0), CoreHarness::Ended(AttemptEndReason::kRankDied, "signal 9"));
  house.Step({Finish{1, job}});
  EXPECT_NE(house.State(job), JobState::kFailed);
  house.Wait(absl::Seconds(3));
  EXPECT_EQ(house.Stored(job).state, JobState::kFailed);
}

}  // namespace
}  // namespace traind
