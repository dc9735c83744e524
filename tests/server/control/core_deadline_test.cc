// The clock: reserves, soft stops, the last Prediction, the deadline itself.
#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

TEST(DeadlineTest, WithoutAnyWorkerTheJobFailsInTimeAndSaysWhy) {
  CoreHarness h;
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.Wait(absl::Seconds(60));
  const Job job = h.Stored(id);
  EXPECT_EQ(job.state, JobState::kFailed);
  EXPECT_EQ(job.end_reason, JobEndReason::kNoWorker);
  EXPECT_LE(job.finished_at, job.deadline);
  EXPECT_FALSE(job.end_message.empty());
}

TEST(DeadlineTest, ExactlyTheFoldsThatWereDoneAnswer) {
  CoreOptions options;
  options.standalone = true;
  CoreHarness h(options);
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 5));
  h.PrepareJob(id);
  for (int fold : {0, 1}) {
    h.now += absl::Seconds(2);
    h.FinishFold(id, fold);
    h.Publish(id, Quality::kDegraded);
  }
  EXPECT_EQ(h.TaskOf(id, 3).state, TaskState::kRunning);
  h.Step({WorkerDetached{"w", h.session}, WorkerDied{"w", h.session}});
  h.publishes.clear();
  h.Wait(absl::Seconds(60) - (h.now - h.Stored(id).accepted_at) - absl::Milliseconds(300));
  ASSERT_FALSE(h.publishes.empty());
  EXPECT_TRUE(h.publishes.back().final);
  ASSERT_EQ(h.publishes.back().request.members.size(), 2u);
  h.Publish(id, Quality::kDegraded);
  const Job job = h.Stored(id);
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.end_reason, JobEndReason::kBudgetReached);
  EXPECT_LE(job.finished_at, job.deadline);
  EXPECT_EQ(job.tasks[3].state, TaskState::kFailed);
  EXPECT_EQ(job.tasks[4].state, TaskState::kDropped);
  EXPECT_EQ(job.tasks[5].state, TaskState::kDropped);
  EXPECT_NE(std::find_if(job.decisions.begin(), job.decisions.end(),
                         [](const Decision& d) { return d.rule == DecisionRule::kB4; }),
            job.decisions.end());
}

TEST(DeadlineTest, WhatStandsIsAdoptedWhenTheLastPublishDoesNotAnswer) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.PrepareJob(id);
  h.Wait(absl::Seconds(60));
  const Job job = h.Stored(id);
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.prediction->quality, Quality::kFloor);
  EXPECT_LE(job.finished_at, job.deadline);
}

TEST(DeadlineTest, APredictionThatIsBeingWrittenHasUntilTheDeadline) {
  for (const bool first : {true, false}) {
    for (const bool answers : {true, false}) {
      CoreHarness h;
      h.Attach("w", 1);
      const std::string id = h.SubmitJob(h.MakeJob("a"));
      const int64_t prepare = h.AttemptOf(id, 0);
      for (int i = 0; i < 58; ++i) {
        h.Wait(absl::Seconds(1));
        h.Step({WorkerHeartbeat{"w", h.session, {prepare}}});
      }
      h.Say(prepare, h.Table());
      h.Say(prepare, facts::FloorReady{"prior", 0.5});
      if (!first) h.Publish(id, Quality::kFloor);
      h.Wait(h.Stored(id).deadline - absl::Milliseconds(50) - h.now);
      EXPECT_EQ(h.State(id), JobState::kFinalizing);
      if (answers) h.Publish(id, Quality::kFloor);
      h.Wait(absl::Milliseconds(50));
      const Job job = h.Stored(id);
      EXPECT_EQ(job.state, first && !answers ? JobState::kFailed : JobState::kSucceeded);
      EXPECT_EQ(job.prediction ? job.prediction->number : 0, (first ? 0 : 1) + (answers ? 1 : 0));
      EXPECT_LE(job.finished_at, job.deadline);
    }
  }
}

TEST(DeadlineTest, NoAttemptOutlivesIt) {
  CoreHarness h;
  h.Attach("w", 2);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.PrepareJob(id);
  h.stops.clear();
  for (int i = 0; i < 60; ++i) {
    h.Step({WorkerHeartbeat{"w", h.session, {h.AttemptOf(id, 1), h.AttemptOf(id, 2)}}});
    h.Wait(absl::Seconds(1));
    if (IsTerminal(h.State(id))) break;
  }
  const Job job = h.Stored(id);
  EXPECT_TRUE(IsTerminal(job.state));
  for (const Attempt& attempt : job.attempts) EXPECT_LE(attempt.ended_at, job.deadline);
  // Told to predict first, aborted when that came to nothing.
  int predicts = 0, aborts = 0;
  for (const StopCommand& stop : h.stops) {
    predicts += stop.mode == StopMode::kPredict;
    aborts += stop.mode == StopMode::kAbort;
  }
  EXPECT_GE(predicts, 2);
  EXPECT_GE(aborts, 2);
}

TEST(DeadlineTest, PublishingIsTriedAgainUntilItWorks) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 1));
  h.PrepareJob(id);
  h.FinishFold(id, 0);
  EXPECT_EQ(h.State(id), JobState::kFinalizing);
  h.Step({Published{id, absl::ResourceExhaustedError("disk full"), false}});
  EXPECT_EQ(h.State(id), JobState::kFinalizing);
  const Turn again = h.Wait(absl::Seconds(1));
  ASSERT_EQ(again.publishes.size(), 1u);
  EXPECT_TRUE(again.publishes[0].final);
  h.Publish(id, Quality::kFull);
  EXPECT_EQ(h.State(id), JobState::kSucceeded);
}

TEST(DeadlineTest, AJobThatCouldNotBeWrittenSaysSo) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 1));
  const int64_t prepare = h.AttemptOf(id, 0);
  h.Say(prepare, h.Table());
  h.Say(prepare, facts::FloorReady{"prior", 0.5});
  h.Say(prepare, h.Ended());
  h.FinishFold(id, 0);
  for (int i = 0; i < 80 && !IsTerminal(h.State(id)); ++i) {
    h.Step({Published{id, absl::ResourceExhaustedError("disk full"), false},
            WorkerHeartbeat{"w", h.session, {}}});
    h.Wait(absl::Seconds(1));
  }
  const Job job = h.Stored(id);
  EXPECT_EQ(job.state, JobState::kFailed);
  EXPECT_EQ(job.end_reason, JobEndReason::kStorageFull);
  EXPECT_LE(job.finished_at, job.deadline);
}

TEST(DeadlineTest, AWorkerOutOfReachMayHavePublished) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.Step({WorkerDetached{"w", h.session}});
  h.publishes.clear();
  h.Wait(absl::Seconds(59.7));
  ASSERT_EQ(h.publishes.size(), 1u);
  EXPECT_TRUE(h.publishes[0].request.table.empty());
  h.Publish(id, Quality::kFloor);
  EXPECT_EQ(h.State(id), JobState::kSucceeded);
}

TEST(DeadlineTest, AFoldThatItsWorkerPublishedAloneCountsThoughItWasGivenUp) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 1));
  h.PrepareJob(id);
  const int64_t attempt = h.AttemptOf(id, 1);
  h.Step({WorkerDetached{"w", h.session}});
  h.publishes.clear();
  h.Wait(h.Stored(id).deadline - h.now - absl::Milliseconds(300));
  ASSERT_FALSE(h.publishes.empty());
  EXPECT_EQ(h.TaskOf(id, 1).state, TaskState::kFailed);
  // The answer joins what it finds on disk.
  PublishedPrediction prediction = h.Prediction(9, Quality::kDegraded, h.now);
  prediction.members = {MemberOf(attempt, h.Saved(false, true))};
  h.Step({Published{id, prediction, false}});
  const Job job = h.Stored(id);
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.tasks[1].state, TaskState::kPartial);
  EXPECT_EQ(job.tasks[1].score, 0.9);
}

TEST(DeadlineTest, MissedWhileTraindWasAwayItCountsFromThePrediction) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.PrepareJob(id);
  const absl::Time deadline = h.Stored(id).deadline;
  h.now = deadline + absl::Minutes(5);
  h.Crash();
  const absl::Time stood = deadline - absl::Seconds(2);
  h.Step({Published{id, h.Prediction(9, Quality::kDegraded, stood), true}});
  const Job job = h.Stored(id);
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.prediction->number, 9);
  EXPECT_EQ(job.finished_at, stood);
  EXPECT_EQ(job.end_reason, JobEndReason::kBudgetReached);
}

TEST(DeadlineTest, AFoldThatIsDoneButWasNotPublishedInTimeIsNamed) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 2));
  h.PrepareJob(id);
  const int64_t first = h.AttemptOf(id, 1);
  h.FinishFold(id, 0);
  h.FinishFold(id, 1);  // its Prediction is lost
  h.now = h.Stored(id).deadline + absl::Minutes(5);
  h.Crash();
  PublishedPrediction prediction =
      h.Prediction(9, Quality::kDegraded, h.Stored(id).deadline - absl::Seconds(50));
  prediction.members = {MemberOf(first, h.Saved(true, true))};
  h.Step({Published{id, prediction, true}});
  const Job job = h.Stored(id);
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.prediction->quality, Quality::kDegraded);
  ASSERT_FALSE(job.decisions.empty());
  EXPECT_EQ(job.decisions.back().rule, DecisionRule::kB8);
  EXPECT_EQ(job.decisions.back().from, "fold 1 with all epochs");
}

TEST(DeadlineTest, UnaskedPredictionsAreNoAnswer) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 1));
  h.PrepareJob(id);
  h.FinishFold(id, 0);
  EXPECT_EQ(h.State(id), JobState::kFinalizing);
  h.Step({Published{id, h.Prediction(++h.number, Quality::kDegraded, h.now), true}});
  EXPECT_EQ(h.State(id), JobState::kFinalizing);
  EXPECT_EQ(h.Stored(id).prediction->quality, Quality::kDegraded);
  h.Publish(id, Quality::kFull);
  EXPECT_EQ(h.State(id), JobState::kSucceeded);
  EXPECT_EQ(h.Stored(id).prediction->quality, Quality::kFull);
}

TEST(DeadlineTest, AnOlderPredictionReplacesNothing) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.PrepareJob(id);
  h.Step({Published{id, h.Prediction(7, Quality::kDegraded, h.now), true}});
  h.Step({Published{id, h.Prediction(3, Quality::kFloor, h.now), true}});
  EXPECT_EQ(h.Stored(id).prediction->number, 7);
}

TEST(PublishTest, OneIsUnderWayAtATime) {
  CoreHarness h;
  h.Attach("w", 3);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.PrepareJob(id);
  h.publishes.clear();
  h.FinishFold(id, 0);
  h.FinishFold(id, 1);
  ASSERT_EQ(h.publishes.size(), 1u);
  EXPECT_EQ(h.publishes[0].request.members.size(), 1u);
  h.Publish(id, Quality::kDegraded);
  ASSERT_EQ(h.publishes.size(), 2u);
  EXPECT_EQ(h.publishes[1].request.members.size(), 2u);
}

TEST(PublishTest, AMemberOfARunningFoldCounts) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.PrepareJob(id);
  h.publishes.clear();
  h.Say(h.AttemptOf(id, 1), h.Saved(false, false, 0.6, 2));
  ASSERT_EQ(h.publishes.size(), 1u);
  EXPECT_FALSE(h.publishes[0].request.members.at(0).complete);
  EXPECT_EQ(h.TaskOf(id, 1).state, TaskState::kRunning);
}

}  // namespace
}  // namespace traind
