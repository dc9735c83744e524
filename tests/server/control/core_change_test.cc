// Pause, Resume and Update of a Job that lives.
#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

// A Job of three folds whose first one trains.
struct TrainingJob : CoreHarness {
  TrainingJob() {
    Attach("w", 1);
    id = SubmitJob(MakeJob("a"));
    PrepareJob(id);
    first = AttemptOf(id, 1);
  }
  absl::Status Ask(Event event) {
    turn = Step({std::move(event)});
    EXPECT_EQ(turn.replies.size(), 1u);
    return turn.replies.at(0).status;
  }
  absl::Status Change(Update update) {
    update.call = 9;
    update.job = id;
    return Ask(std::move(update));
  }
  std::string id;
  int64_t first = 0;
  Turn turn;
};

TEST(PauseTest, LetsGoOfTheSlotWithACheckpointAndResumeGoesOnFromIt) {
  TrainingJob h;
  h.Say(h.first, h.Started());
  h.Say(h.first, h.CheckpointAt(300, 3));
  ASSERT_EQ(h.Ask(Pause{1, h.id}), absl::OkStatus());
  EXPECT_EQ(h.State(h.id), JobState::kPaused);
  ASSERT_EQ(h.turn.stops.size(), 1u);
  EXPECT_EQ(h.turn.stops[0].mode, StopMode::kDrop);
  h.starts.clear();
  h.Say(h.first, h.Ended(AttemptEndReason::kShutdown, "the job is paused"));
  h.Wait(absl::Seconds(5));
  EXPECT_TRUE(h.starts.empty());
  EXPECT_EQ(h.State(h.id), JobState::kPaused);
  EXPECT_EQ(h.TaskOf(h.id, 1).state, TaskState::kPending);

  ASSERT_EQ(h.Ask(Resume{2, h.id}), absl::OkStatus());
  ASSERT_EQ(h.turn.starts.size(), 1u);
  EXPECT_EQ(h.turn.starts[0].resume, "checkpoint-300.json");
  EXPECT_EQ(h.State(h.id), JobState::kRunning);
}

TEST(PauseTest, TwiceIsOnceAndResumeOfARunningJobChangesNothing) {
  TrainingJob h;
  EXPECT_EQ(h.Ask(Resume{1, h.id}), absl::OkStatus());
  EXPECT_EQ(h.State(h.id), JobState::kRunning);
  EXPECT_EQ(h.Ask(Pause{2, h.id}), absl::OkStatus());
  EXPECT_EQ(h.Ask(Pause{3, h.id}), absl::OkStatus());
  EXPECT_TRUE(h.turn.stops.empty());
  EXPECT_EQ(h.Rules(h.id), std::vector<std::string>{"user"});
}

TEST(PauseTest, OtherJobsGetTheSlotMeanwhile) {
  TrainingJob h;
  const std::string other = h.SubmitJob(h.MakeJob("b"));
  h.PrepareJob(other);
  EXPECT_EQ(h.TaskOf(other, 1).state, TaskState::kPending);
  ASSERT_EQ(h.Ask(Pause{1, h.id}), absl::OkStatus());
  h.Say(h.first, h.Ended(AttemptEndReason::kShutdown));
  EXPECT_EQ(h.TaskOf(other, 1).state, TaskState::kRunning);
}

TEST(PauseTest, TheClockGoesOnAndWhatThereIsAnswersInTime) {
  TrainingJob h;
  ASSERT_EQ(h.Ask(Pause{1, h.id}), absl::OkStatus());
  h.Say(h.first, h.Ended(AttemptEndReason::kShutdown));
  h.publishes.clear();
  h.Wait(absl::Seconds(60) - (h.now - h.Stored(h.id).accepted_at) - absl::Milliseconds(100));
  ASSERT_FALSE(h.publishes.empty());
  EXPECT_TRUE(h.publishes.back().final);
  h.Publish(h.id, Quality::kFloor);
  const Job job = h.Stored(h.id);
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.end_reason, JobEndReason::kBudgetReached);
  EXPECT_LE(job.finished_at, job.deadline);
}

TEST(PauseTest, OutlivesTheDaemonAndStopsWhatAWorkerStillRuns) {
  TrainingJob h;
  h.Say(h.first, h.Started());
  ASSERT_EQ(h.Ask(Pause{1, h.id}), absl::OkStatus());
  h.Crash();
  EXPECT_EQ(h.State(h.id), JobState::kPaused);
  h.stops.clear();
  h.Attach("w", 1, {h.first});
  ASSERT_EQ(h.stops.size(), 1u);
  EXPECT_EQ(h.stops[0].attempt, h.first);
  EXPECT_EQ(h.stops[0].mode, StopMode::kDrop);
}

TEST(PauseTest, FinishOfAPausedJobPredicts) {
  TrainingJob h;
  ASSERT_EQ(h.Ask(Pause{1, h.id}), absl::OkStatus());
  ASSERT_EQ(h.Ask(Finish{2, h.id}), absl::OkStatus());
  h.Say(h.first, h.Ended(AttemptEndReason::kShutdown));
  h.Publish(h.id, Quality::kFloor);
  EXPECT_EQ(h.State(h.id), JobState::kSucceeded);
}

TEST(PauseTest, IsRefusedWhenTheLastPredictionIsMadeAndOfNobody) {
  TrainingJob h;
  ASSERT_EQ(h.Ask(Finish{1, h.id}), absl::OkStatus());
  EXPECT_TRUE(absl::IsFailedPrecondition(h.Ask(Pause{2, h.id})));
  EXPECT_TRUE(absl::IsFailedPrecondition(h.Ask(Pause{3, "nobody"})));
}

TEST(UpdateTest, ALaterDeadlineReachesTheWorkerOfEveryAttempt) {
  TrainingJob h;
  h.Say(h.first, h.Started());
  h.Wait(absl::Seconds(5));
  Update update;
  update.budget = absl::Seconds(600);
  ASSERT_EQ(h.Change(update), absl::OkStatus());
  const Job job = h.Stored(h.id);
  EXPECT_EQ(job.deadline, job.accepted_at + absl::Seconds(600));
  ASSERT_FALSE(h.turn.replans.empty());
  EXPECT_EQ(h.turn.replans[0].attempt, h.first);
  EXPECT_EQ(h.turn.replans[0].deadline, job.deadline);
  EXPECT_GT(h.turn.replans[0].stop_at, job.accepted_at + absl::Seconds(60));
  EXPECT_EQ(h.Rules(h.id).back(), "user");
}

TEST(UpdateTest, MoreTimeBringsBackWhatHadNone) {
  TrainingJob h;
  h.Say(h.first, h.Started());
  h.now += absl::Seconds(50);
  h.Step({WorkerHeartbeat{"w", h.session, {h.first}}});
  h.Wait(absl::Seconds(4));
  ASSERT_EQ(h.TaskOf(h.id, 3).state, TaskState::kDropped);
  Update update;
  update.budget = absl::Seconds(600);
  ASSERT_EQ(h.Change(update), absl::OkStatus());
  EXPECT_EQ(h.TaskOf(h.id, 3).state, TaskState::kPending);
}

TEST(UpdateTest, AnEarlierDeadlineIsKept) {
  TrainingJob h;
  Update update;
  update.deadline = h.now + absl::Seconds(10);
  ASSERT_EQ(h.Change(update), absl::OkStatus());
  h.publishes.clear();
  h.Wait(absl::Seconds(10) - absl::Milliseconds(100));
  ASSERT_FALSE(h.publishes.empty());
  h.Publish(h.id, Quality::kFloor);
  const Job job = h.Stored(h.id);
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_LE(job.finished_at, job.deadline);
}

TEST(UpdateTest, TheEarlierOfTheTwoCounts) {
  TrainingJob h;
  Update update;
  update.budget = absl::Seconds(100);
  update.deadline = h.now + absl::Seconds(50);
  ASSERT_EQ(h.Change(update), absl::OkStatus());
  EXPECT_EQ(h.Stored(h.id).deadline, *update.deadline);
}

TEST(UpdateTest, ADeadlineThatLeavesNoTimeIsRefusedAndNothingChanges) {
  TrainingJob h;
  const Job before = h.Stored(h.id);
  Update update;
  update.deadline = h.now - absl::Seconds(1);
  update.priority = 7;
  const absl::Status status = h.Change(update);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_NE(status.message().find("deadline: "), std::string::npos) << status;
  update.deadline.reset();
  update.budget = absl::Microseconds(1);
  EXPECT_TRUE(absl::IsInvalidArgument(h.Change(update)));
  EXPECT_EQ(h.Stored(h.id).deadline, before.deadline);
  EXPECT_EQ(h.Stored(h.id).spec.priority, before.spec.priority);
}

TEST(UpdateTest, PriorityMovesAJobInTheQueueAndLabelsAreStored) {
  TrainingJob h;
  Job second = h.MakeJob("b"), third = h.MakeJob("c");
  const std::string b = h.SubmitJob(second), c = h.SubmitJob(third);
  h.PrepareJob(b);
  h.PrepareJob(c);
  EXPECT_EQ(h.core().FindJob(c)->queue_position, 2);
  Update update;
  update.call = 4;
  update.job = c;
  update.deadline = h.Stored(b).deadline;  // equally far: then priority counts
  update.priority = 5;
  update.set_labels = {{"team", "a"}};
  ASSERT_EQ(h.Ask(update), absl::OkStatus());
  EXPECT_EQ(h.core().FindJob(c)->queue_position, 1);
  EXPECT_EQ(h.Stored(c).spec.priority, 5);
  EXPECT_EQ(h.Stored(c).spec.labels.at("team"), "a");
  update = Update{5, c, {}, {}, {}, {}, {"team"}};
  ASSERT_EQ(h.Ask(update), absl::OkStatus());
  EXPECT_TRUE(h.Stored(c).spec.labels.empty());
}

TEST(UpdateTest, OfAJobThatIsOverIsRefused) {
  TrainingJob h;
  h.CancelJob(h.id);
  Update update;
  update.priority = 1;
  EXPECT_FALSE(h.Change(update).ok());
}

}  // namespace
}  // namespace traind
