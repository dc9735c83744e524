// The calls of clients (Submit, Finish, Cancel) and their answers.
#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

TEST(SubmitTest, IsStoredBeforeItIsAnswered) {
  CoreHarness h;
  const Turn turn = h.Step({Submit{1, h.MakeJob("a")}});
  ASSERT_EQ(turn.mutations.jobs.size(), 1u);
  EXPECT_TRUE(turn.mutations.durable);
  ASSERT_EQ(turn.replies.size(), 1u);
  EXPECT_TRUE(turn.replies[0].created);
  EXPECT_EQ(turn.replies[0].call, 1u);
  const Job& job = *turn.replies[0].job;
  EXPECT_EQ(job.state, JobState::kQueued);
  EXPECT_EQ(job.accepted_at, h.now);
  EXPECT_EQ(job.deadline, h.now + absl::Seconds(60));
  EXPECT_EQ(job.version, 1);
  ASSERT_EQ(job.tasks.size(), 4u);
  EXPECT_EQ(job.tasks[0].kind, TaskKind::kPrepare);
  EXPECT_EQ(job.tasks[3].fold, 2);
}

TEST(SubmitTest, TheSameRequestAnswersTheSameJob) {
  CoreHarness h;
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  Job again = h.MakeJob("a");
  again.id = "another-id";
  const Turn turn = h.Step({Submit{2, again}});
  EXPECT_EQ(turn.replies[0].status, absl::OkStatus());
  EXPECT_FALSE(turn.replies[0].created);
  EXPECT_EQ(turn.replies[0].job->id, id);
  EXPECT_TRUE(turn.mutations.jobs.empty());
}

TEST(SubmitTest, TwiceInOneTurnMakesOneJob) {
  CoreHarness h;
  const Turn turn = h.Step({Submit{1, h.MakeJob("a")}, Submit{2, h.MakeJob("a")}});
  EXPECT_EQ(turn.mutations.jobs.size(), 1u);
  ASSERT_EQ(turn.replies.size(), 2u);
  EXPECT_TRUE(turn.replies[0].created);
  EXPECT_FALSE(turn.replies[1].created);
  EXPECT_EQ(turn.replies[0].job->id, turn.replies[1].job->id);
}

TEST(SubmitTest, AnotherSpecUnderTheSameRequestIsRefused) {
  CoreHarness h;
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  Job other = h.MakeJob("a");
  other.spec_sha256 = "other";
  const Turn turn = h.Step({Submit{2, other}});
  EXPECT_EQ(turn.replies[0].status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(turn.replies[0].job->id, id);
}

TEST(SubmitTest, RequestsOfOtherOwnersAreOtherRequests) {
  CoreHarness h;
  h.SubmitJob(h.MakeJob("a"));
  Job other = h.MakeJob("a");
  other.owner = "someone";
  other.id = "theirs";
  EXPECT_EQ(h.SubmitJob(other), "theirs");
}

TEST(SubmitTest, ARequestIsKnownAfterItsJobHasEnded) {
  CoreHarness h;
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.Step({Cancel{2, id}});
  const Turn turn = h.Step({Submit{3, h.MakeJob("a")}});
  EXPECT_FALSE(turn.replies[0].created);
  ASSERT_NE(turn.replies[0].job, nullptr);
  EXPECT_EQ(turn.replies[0].job->state, JobState::kCancelled);
}

TEST(SubmitTest, IdsThatCollideGetADigit) {
  CoreHarness h;
  Job first = h.MakeJob("a"), second = h.MakeJob("b");
  first.id = second.id = "same";
  EXPECT_EQ(h.SubmitJob(first), "same");
  EXPECT_EQ(h.SubmitJob(second), "same-2");
}

TEST(SubmitTest, AFullQueueRefuses) {
  CoreOptions options;
  options.max_active_jobs = 2;
  CoreHarness h(options);
  h.SubmitJob(h.MakeJob("a"));
  h.SubmitJob(h.MakeJob("b"));
  const Turn turn = h.Step({Submit{3, h.MakeJob("c")}});
  EXPECT_EQ(turn.replies[0].status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(turn.mutations.jobs.empty());
}

TEST(SubmitTest, ADeadlineInThePastIsRefusedWithItsPlace) {
  CoreHarness h;
  Job job = h.MakeJob("a");
  job.spec.deadline = h.now - absl::Seconds(1);
  const Turn turn = h.Step({Submit{3, job}});
  EXPECT_EQ(turn.replies[0].status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(turn.replies[0].status.message().substr(0, 16), "budget.deadline:");
}

TEST(SubmitTest, AJobSaysWhyItWaitsAndWhere) {
  CoreHarness h;
  const std::string a = h.SubmitJob(h.MakeJob("a"));
  const std::string b = h.SubmitJob(h.MakeJob("b"));
  EXPECT_EQ(h.core().FindJob(a)->pending_reason, PendingReason::kNoMatchingWorker);
  EXPECT_EQ(h.core().FindJob(a)->queue_position, 1);
  EXPECT_EQ(h.core().FindJob(b)->queue_position, 2);
  EXPECT_EQ(h.core().FindJob("nobody"), nullptr);
}

TEST(FinishTest, StopsTrainingAndPredictsWithWhatThereIs) {
  CoreHarness h;
  h.Attach("w", 2);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.PrepareJob(id);
  h.FinishFold(id, 0);
  h.Publish(id, Quality::kDegraded);
  const int64_t running = h.AttemptOf(id, 2);
  const Turn turn = h.Step({Finish{5, id}});
  EXPECT_EQ(turn.replies[0].status, absl::OkStatus());
  EXPECT_TRUE(turn.replies[0].job->finish_requested);
  // Two folds run (the third took the first one's slot): both are told.
  ASSERT_EQ(turn.stops.size(), 2u);
  EXPECT_EQ(turn.stops[0].mode, StopMode::kPredict);
  EXPECT_EQ(turn.stops[0].attempt, running);
  EXPECT_EQ(h.State(id), JobState::kRunning);
  h.Say(h.AttemptOf(id, 2), h.Saved(false, true, 0.8, 3));
  h.Say(h.AttemptOf(id, 3), h.Saved(false, true, 0.8, 3));
  EXPECT_EQ(h.State(id), JobState::kFinalizing);
  h.Publish(id, Quality::kDegraded);
  h.Publish(id, Quality::kDegraded);
  const Job job = h.Stored(id);
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.end_reason, JobEndReason::kFinishedByUser);
  EXPECT_EQ(job.tasks[1].state, TaskState::kDone);
  EXPECT_EQ(job.tasks[2].state, TaskState::kPartial);
}

TEST(FinishTest, TwiceIsOnce) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.PrepareJob(id);
  h.Step({Finish{5, id}});
  const Turn turn = h.Step({Finish{6, id}});
  EXPECT_EQ(turn.replies[0].status, absl::OkStatus());
  EXPECT_TRUE(turn.stops.empty());
  EXPECT_EQ(h.Rules(id), std::vector<std::string>{"user"});
}

TEST(FinishTest, BeforeTheFloorWaitsForIt) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.Step({Finish{5, id}});
  EXPECT_EQ(h.State(id), JobState::kFinalizing);
  const int64_t prepare = h.AttemptOf(id, 0);
  h.Say(prepare, h.Table());
  const Turn turn = h.Say(prepare, facts::FloorReady{"prior", 0.5});
  ASSERT_EQ(turn.publishes.size(), 1u);
  EXPECT_TRUE(turn.publishes[0].final);
  h.Publish(id, Quality::kFloor);
  EXPECT_EQ(h.State(id), JobState::kSucceeded);
  EXPECT_EQ(h.Stored(id).end_reason, JobEndReason::kFinishedByUser);
}

TEST(FinishTest, WithoutADeadlineFoldsHaveThirtySecondsToPredict) {
  CoreHarness h;
  h.Attach("w", 1);
  Job job = h.MakeJob("a");
  job.spec.budget.reset();
  const std::string id = h.SubmitJob(job);
  h.PrepareJob(id);
  h.Step({Finish{5, id}});
  for (int i = 0; i < 29; ++i) {
    h.Step({WorkerHeartbeat{"w", h.session, {h.AttemptOf(id, 1)}}});
    h.Wait(absl::Seconds(1));
  }
  EXPECT_EQ(h.State(id), JobState::kRunning);
  h.Wait(absl::Seconds(2));
  EXPECT_EQ(h.State(id), JobState::kFinalizing);
  h.Publish(id, Quality::kFloor);
  EXPECT_EQ(h.State(id), JobState::kSucceeded);
}

TEST(FinishTest, APredictionThatNobodyToldOfIsLookedForBeforeTheJobFails) {
  CoreHarness h;
  h.Attach("w", 1);
  Job job = h.MakeJob("a");
  job.spec.budget.reset();
  const std::string id = h.SubmitJob(job);
  h.Step({Finish{5, id}});
  h.publishes.clear();
  h.Wait(absl::Seconds(31));  // the Worker, which reads the data, is silent for more than a lease
  ASSERT_EQ(h.publishes.size(), 1u);
  EXPECT_TRUE(h.publishes[0].request.table.empty()) << "only asks what stands";
  EXPECT_EQ(h.State(id), JobState::kFinalizing);
  h.Publish(id, Quality::kFloor);
  EXPECT_EQ(h.State(id), JobState::kSucceeded);
}

TEST(FinishTest, WhereNoPredictionStandsTheJobFails) {
  CoreHarness h;
  h.Attach("w", 1);
  Job job = h.MakeJob("a");
  job.spec.budget.reset();
  const std::string id = h.SubmitJob(job);
  h.Step({Finish{5, id}});
  h.Wait(absl::Seconds(31));
  h.Step({Published{id, absl::NotFoundError("no prediction stands"), false}});
  EXPECT_EQ(h.State(id), JobState::kFailed);
}

TEST(FinishTest, OfAJobThatIsNotThereAnyMoreIsRefused) {
  CoreHarness h;
  EXPECT_EQ(h.Step({Finish{5, "x"}}).replies[0].status.code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(h.Step({Cancel{5, "x"}}).replies[0].status.code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(CancelTest, EndsTheJobAndAbortsItsAttempts) {
  CoreHarness h;
  h.Attach("w", 2);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.PrepareJob(id);
  const Turn turn = h.CancelJob(id);
  ASSERT_EQ(turn.replies.size(), 1u);
  EXPECT_EQ(turn.replies[0].status, absl::OkStatus());
  EXPECT_EQ(turn.replies[0].job->state, JobState::kCancelled);
  for (const Reply& late : h.Step({Finish{6, id}, Cancel{7, id}}).replies) {
    EXPECT_EQ(late.status.code(), absl::StatusCode::kFailedPrecondition);
  }
  ASSERT_EQ(turn.stops.size(), 2u);
  EXPECT_EQ(turn.stops[0].mode, StopMode::kAbort);
  const Job job = h.Stored(id);
  EXPECT_EQ(job.end_reason, JobEndReason::kCancelledByUser);
  EXPECT_EQ(job.finished_at, h.now);
  for (const Attempt& attempt : job.attempts) {
    EXPECT_NE(attempt.ended_at, absl::InfiniteFuture());
  }
  EXPECT_EQ(h.core().FindJob(id), nullptr);
}

TEST(CancelTest, APredictionThatIsBeingWrittenStays) {
  CoreHarness h;
  h.Attach("w", 2);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  const int64_t prepare = h.AttemptOf(id, 0);
  h.Say(prepare, h.Table());
  ASSERT_EQ(h.Say(prepare, facts::FloorReady{"prior", 0.5}).publishes.size(), 1u);
  const Turn asked = h.Step({Cancel{5, id}, Finish{6, id}, Cancel{7, id}});
  ASSERT_EQ(asked.replies.size(), 1u);
  EXPECT_EQ(asked.replies[0].status.code(), absl::StatusCode::kFailedPrecondition);  // Finish
  EXPECT_FALSE(IsTerminal(h.State(id)));
  EXPECT_TRUE(asked.starts.empty());
  h.Publish(id, Quality::kFloor);
  EXPECT_FALSE(IsTerminal(h.State(id))) << "a Worker may have published, too";
  const Turn told = h.Step({Published{id, absl::NotFoundError("none"), false}});
  ASSERT_EQ(told.replies.size(), 2u);
  EXPECT_EQ(told.replies[0].job->state, JobState::kCancelled);
  ASSERT_TRUE(h.Stored(id).prediction.has_value());
  EXPECT_EQ(h.Stored(id).prediction->quality, Quality::kFloor);
}

TEST(CancelTest, ThePredictionOfAWorkerThatNobodyHeardOfStays) {
  CoreHarness h;
  h.Attach("w", 2);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  const Turn asked = h.Step({Cancel{5, id}});
  EXPECT_TRUE(asked.replies.empty());
  ASSERT_EQ(asked.publishes.size(), 1u);
  EXPECT_TRUE(asked.publishes[0].request.table.empty()) << "it reads what stands";
  h.Step({Published{id, h.Prediction(1, Quality::kFloor, h.now), false}});
  EXPECT_EQ(h.State(id), JobState::kCancelled);
  EXPECT_TRUE(h.Stored(id).prediction.has_value());
}

TEST(CancelTest, ANewerPredictionThanTheKnownOneStays) {
  CoreHarness h;
  h.Attach("w", 2);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.PrepareJob(id);
  const int known = h.Stored(id).prediction->number;
  h.Step({Cancel{5, id}});
  h.Step({Published{id, h.Prediction(known + 1, Quality::kFloor, h.now), false}});
  EXPECT_EQ(h.State(id), JobState::kCancelled);
  EXPECT_EQ(h.Stored(id).prediction->number, known + 1);
}

TEST(CancelTest, ADiskThatSaysNothingDoesNotHoldTheEndUp) {
  CoreHarness h;
  h.Attach("w", 2);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.Step({Cancel{5, id}});
  EXPECT_FALSE(IsTerminal(h.State(id)));
  const Turn ended = h.Wait(absl::Seconds(3));
  EXPECT_EQ(h.State(id), JobState::kCancelled);
  EXPECT_EQ(ended.replies.size(), 1u);
}

TEST(CancelTest, ACallIsAnsweredAlsoWhereItsJobFailsMeanwhile) {
  CoreOptions options;
  options.max_failures = 1;
  CoreHarness h(options);
  h.Attach("w", 2);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  const int64_t prepare = h.AttemptOf(id, 0);
  ASSERT_TRUE(h.Step({Cancel{5, id}}).replies.empty());
  const Turn failed = h.Say(prepare, h.Ended(AttemptEndReason::kUserError, "no such column"));
  ASSERT_TRUE(IsTerminal(h.State(id)));
  ASSERT_EQ(failed.replies.size(), 1u);
  EXPECT_EQ(failed.replies[0].call, 5u);
}

TEST(CancelTest, ACancelOutlivesARestart) {
  CoreHarness h;
  h.Attach("w", 2);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.Step({Cancel{5, id}});
  h.Crash();
  h.Step();
  EXPECT_FALSE(IsTerminal(h.State(id)));
  h.Wait(absl::Seconds(3));
  EXPECT_EQ(h.State(id), JobState::kCancelled);
}

TEST(CancelTest, SlotsAreFreeOnlyWhenTheWorkerSaysSo) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string a = h.SubmitJob(h.MakeJob("a"));
  h.PrepareJob(a);
  const int64_t running = h.AttemptOf(a, 1);
  h.Step({Cancel{5, a}});
  const std::string b = h.SubmitJob(h.MakeJob("b"));
  const int64_t prepare = h.AttemptOf(b, 0);
  EXPECT_TRUE(h.Say(prepare, h.Table()).starts.empty());
  const Turn freed = h.Say(running, h.Ended(AttemptEndReason::kCancelledByUser));
  ASSERT_EQ(freed.starts.size(), 1u);
  EXPECT_EQ(freed.starts[0].job->id, b);
}

TEST(PauseTest, APausedJobIsNotPrepared) {
  CoreHarness h;
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.Step({Pause{1, id}});
  EXPECT_EQ(h.State(id), JobState::kPaused);
  h.Attach("w", 1);
  EXPECT_TRUE(h.Step().starts.empty());
  EXPECT_EQ(h.TaskOf(id, 0).state, TaskState::kPending);
  const Turn resumed = h.Step({Resume{2, id}});
  ASSERT_EQ(resumed.starts.size(), 1u);
  EXPECT_EQ(resumed.starts[0].kind, TaskKind::kPrepare);
}

TEST(ShutdownTest, WorkersOfAClusterGoOn) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.PrepareJob(id);
  const Turn turn = h.Step({ShutdownRequested{}});
  EXPECT_TRUE(turn.stops.empty());
  EXPECT_TRUE(turn.shutdowns.empty());
  EXPECT_EQ(h.TaskOf(id, 1).state, TaskState::kRunning);
  EXPECT_EQ(h.Step({Submit{9, h.MakeJob("b")}}).replies[0].status.code(),
            absl::StatusCode::kUnavailable);
}

TEST(ShutdownTest, DropsEverythingAndAcceptsNothingMore) {
  CoreOptions options;
  options.standalone = true;
  CoreHarness h(options);
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.PrepareJob(id);
  const int64_t running = h.AttemptOf(id, 1);
  const Turn turn = h.Step({ShutdownRequested{}});
  ASSERT_EQ(turn.stops.size(), 1u);
  EXPECT_EQ(turn.stops[0].mode, StopMode::kDrop);
  ASSERT_EQ(turn.shutdowns.size(), 1u);
  EXPECT_EQ(turn.shutdowns[0].worker, "w");
  h.Say(running, h.CheckpointAt(50, 0.5));
  const Turn ended = h.Say(running, h.Ended(AttemptEndReason::kShutdown));
  EXPECT_TRUE(ended.starts.empty());
  const Task task = h.TaskOf(id, 1);
  EXPECT_EQ(task.state, TaskState::kPending);
  EXPECT_EQ(task.failures + task.losses, 0);
  EXPECT_FALSE(IsTerminal(h.State(id)));
  EXPECT_EQ(h.Step({Submit{9, h.MakeJob("b")}}).replies[0].status.code(),
            absl::StatusCode::kUnavailable);
  // The next traind goes on from the checkpoint.
  h.Crash();
  const Turn again = h.Attach("w", 1, {}, "boot-2");
  ASSERT_EQ(again.starts.size(), 1u);
  EXPECT_EQ(again.starts[0].resume, "checkpoint-50.json");
  EXPECT_GT(again.starts[0].attempt, running);
}

}  // namespace
}  // namespace traind
