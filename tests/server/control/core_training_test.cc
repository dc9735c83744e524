// A Job's way through PREPARE and TRAIN: plans, facts, retries, slots.
#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

TEST(PrepareTest, StartsAtOnceWhereAWorkerIs) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  ASSERT_EQ(h.starts.size(), 1u);
  EXPECT_EQ(h.starts[0].kind, TaskKind::kPrepare);
  EXPECT_TRUE(h.starts[0].slots.empty());
  EXPECT_EQ(h.starts[0].deadline, h.now + absl::Seconds(60));
  EXPECT_EQ(h.State(id), JobState::kPlanning);
  EXPECT_EQ(h.core().FindJob(id)->pending_reason, PendingReason::kPreparing);
}

TEST(PrepareTest, WaitsForAWorker) {
  CoreHarness h;
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  EXPECT_EQ(h.State(id), JobState::kQueued);
  const Turn turn = h.Attach("w", 1);
  ASSERT_EQ(turn.starts.size(), 1u);
  EXPECT_EQ(turn.starts[0].job->id, id);
  EXPECT_EQ(turn.starts[0].job->state, JobState::kPlanning);
}

TEST(PrepareTest, TheBetterFloorIsAwaitedAfterTheLastFold) {
  for (const bool finished_by_user : {false, true}) {
    CoreHarness h;
    h.Attach("w", 2);
    const std::string id = h.SubmitJob(h.MakeJob("a"));
    const int64_t prepare = h.AttemptOf(id, 0);
    h.Say(prepare, h.Table());
    h.Say(prepare, facts::FloorReady{"naive", 0.5});
    h.Publish(id, Quality::kFloor);
    for (int fold = 0; fold < h.Stored(id).spec.folds; ++fold) h.FinishFold(id, fold);
    h.Publish(id, Quality::kFull);
    EXPECT_EQ(h.State(id), JobState::kRunning);
    if (finished_by_user) {
      h.Step({Finish{5, id}});
    } else {
      h.Say(prepare, facts::FloorReady{"naive+ets", 0.6});
      EXPECT_EQ(h.State(id), JobState::kRunning);
      h.Say(prepare, h.Ended());
    }
    EXPECT_EQ(h.State(id), JobState::kFinalizing);
  }
}

TEST(PrepareTest, TheEarliestDeadlineGoesFirstUpToACap) {
  CoreOptions options;
  options.max_prepares = 2;
  CoreHarness h(options);
  const auto submit = [&h](const std::string& name, absl::Duration budget) {
    Job job = h.MakeJob(name);
    job.spec.budget = budget;
    return h.SubmitJob(job);
  };
  submit("slow", absl::Hours(3));
  submit("slower", absl::Hours(4));
  const std::string soon = submit("soon", absl::Hours(2));
  const Turn turn = h.Attach("w", 1);
  ASSERT_EQ(turn.starts.size(), 2u);
  EXPECT_EQ(turn.starts[0].job->id, soon);
  EXPECT_EQ(turn.starts[1].job->id, "job-slow");
  // Who is due within a minute does not wait for the cap.
  const std::string urgent = submit("urgent", absl::Seconds(20));
  EXPECT_EQ(h.starts.back().job->id, urgent);
  // One ends: the next goes.
  const Turn next = h.Say(turn.starts[0].attempt, h.Ended(AttemptEndReason::kRankDied));
  EXPECT_TRUE(next.starts.empty());
}

TEST(PrepareTest, BadDataFailTheJobWithThePlace) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.Say(h.AttemptOf(id, 0), h.Ended(AttemptEndReason::kDataError, "train.csv, row 7: 3 fields"));
  const Job job = h.Stored(id);
  EXPECT_EQ(job.state, JobState::kFailed);
  EXPECT_EQ(job.end_reason, JobEndReason::kDataError);
  EXPECT_EQ(job.end_message, "train.csv, row 7: 3 fields");
  EXPECT_EQ(job.tasks[1].state, TaskState::kDropped);
}

TEST(PrepareTest, OtherFailuresAreRetriedThenTold) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(h.State(id), JobState::kPlanning) << i;
    h.Say(h.AttemptOf(id, 0), h.Ended(AttemptEndReason::kOutOfMemory, "too large"));
    h.Wait(absl::Seconds(1));
  }
  const Job job = h.Stored(id);
  EXPECT_EQ(job.state, JobState::kFailed);
  EXPECT_EQ(job.end_reason, JobEndReason::kOutOfMemory);
  EXPECT_EQ(job.attempts.size(), 3u);
  EXPECT_EQ(h.Rules(id), (std::vector<std::string>{"retry", "retry"}));
}

TEST(TrainTest, FoldsStartOnAProvisionalPlanAsSoonAsTheTableIsThere) {
  CoreHarness h;
  h.Attach("w", 2);
  const std::string id = h.SubmitJob(h.MakeJob("a", 5));
  const Turn turn = h.Say(h.AttemptOf(id, 0), h.Table());
  ASSERT_EQ(turn.starts.size(), 2u);
  EXPECT_EQ(turn.starts[0].fold, 0);
  EXPECT_EQ(turn.starts[1].fold, 1);
  EXPECT_EQ(turn.starts[0].slots, std::vector<int>{0});
  EXPECT_EQ(turn.starts[1].slots, std::vector<int>{1});
  EXPECT_EQ(turn.starts[0].epochs, 20);
  EXPECT_LT(turn.starts[0].stop_at, turn.starts[0].deadline);
  const Job job = h.Stored(id);
  EXPECT_EQ(job.state, JobState::kRunning);
  ASSERT_EQ(job.plans.size(), 1u);
  EXPECT_FALSE(job.plans[0].estimate.has_value());
}

TEST(TrainTest, TheFirstTimedStepsMakeTheRealPlan) {
  CoreHarness h;
  h.Attach("w", 2);
  const std::string id = h.SubmitJob(h.MakeJob("a", 5));
  h.PrepareJob(id);
  const int64_t attempt = h.AttemptOf(id, 1);
  h.now += absl::Milliseconds(100);
  h.Say(attempt, h.Started(100));
  // 100 steps of 40 ms x 20 epochs x 5 folds / 2 = 200 s and more, for 60 s.
  const Turn turn = h.Say(attempt, h.Probe(0.04));
  const Job job = h.Stored(id);
  ASSERT_EQ(job.plans.size(), 2u);
  EXPECT_TRUE(job.plans[1].estimate.has_value());
  EXPECT_EQ(job.plans[1].folds, 3);
  EXPECT_LT(job.plans[1].epochs, 20);
  EXPECT_EQ(h.Rules(id), (std::vector<std::string>{"B2", "B2"}));
  EXPECT_EQ(job.tasks[4].state, TaskState::kDropped);
  EXPECT_EQ(job.tasks[5].state, TaskState::kDropped);
  EXPECT_EQ(job.tasks[1].epochs_planned, job.plans[1].epochs);
  // Both running folds are told.
  ASSERT_EQ(turn.replans.size(), 2u);
  EXPECT_EQ(turn.replans[0].epochs, job.plans[1].epochs);
  EXPECT_TRUE(turn.replans[0].plan_cut);
}

TEST(TrainTest, AJobThatFitsEndsFull) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 2));
  h.PrepareJob(id);
  const int64_t first = h.AttemptOf(id, 1);
  h.Say(first, h.Started());
  h.Say(first, h.Probe(0.001));
  h.now += absl::Seconds(1);
  h.Say(first, h.Saved(true, true));
  EXPECT_EQ(h.TaskOf(id, 1).state, TaskState::kDone);
  ASSERT_FALSE(h.publishes.empty());
  EXPECT_EQ(h.publishes.back().request.members.size(), 1u);
  EXPECT_FALSE(h.publishes.back().final);
  h.Publish(id, Quality::kDegraded);
  const Turn freed = h.Say(first, h.Ended());
  ASSERT_EQ(freed.starts.size(), 1u);
  EXPECT_EQ(freed.starts[0].fold, 1);
  const int64_t second = h.AttemptOf(id, 2);
  h.now += absl::Seconds(1);
  const Turn last = h.Step({h.FactOf(second, h.Saved(true, true)), h.FactOf(second, h.Ended())});
  EXPECT_EQ(h.State(id), JobState::kFinalizing);
  ASSERT_EQ(last.publishes.size(), 1u);
  EXPECT_TRUE(last.publishes[0].final);
  EXPECT_FALSE(last.publishes[0].request.plan_cut);
  h.Publish(id, Quality::kFull);
  const Job job = h.Stored(id);
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.end_reason, JobEndReason::kCompleted);
  EXPECT_EQ(job.prediction->quality, Quality::kFull);
  EXPECT_EQ(job.finished_at, h.now);
  EXPECT_TRUE(job.decisions.empty());
  for (size_t i = 1; i < job.attempts.size(); ++i) {
    EXPECT_GT(job.attempts[i].id, job.attempts[i - 1].id);
  }
}

TEST(TrainTest, WithoutTestRowsModelsAreEnough) {
  CoreHarness h;
  h.Attach("w", 1);
  Job spec = h.MakeJob("a", 1);
  spec.spec.has_test = false;
  const std::string id = h.SubmitJob(spec);
  const int64_t prepare = h.AttemptOf(id, 0);
  h.Say(prepare, h.Table());
  h.Say(prepare, h.Ended());
  h.FinishFold(id, 0);
  PublishedPrediction scores;
  scores.oof_score = 0.8;
  h.Step({Published{id, scores, false}});
  const Job job = h.Stored(id);
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.end_reason, JobEndReason::kCompleted);
  EXPECT_EQ(job.prediction->number, 0);
  EXPECT_EQ(job.prediction->oof_score, 0.8);
}

TEST(TrainTest, WithoutTestRowsAndModelsTheJobFails) {
  CoreHarness h;
  h.Attach("w", 1);
  Job spec = h.MakeJob("a", 1);
  spec.spec.has_test = false;
  const std::string id = h.SubmitJob(spec);
  const int64_t prepare = h.AttemptOf(id, 0);
  h.Say(prepare, h.Table());
  h.Say(prepare, h.Ended());
  h.Say(h.AttemptOf(id, 1), h.Ended(AttemptEndReason::kUserError, "no such model"));
  PublishedPrediction scores;
  h.Step({Published{id, scores, false}});
  EXPECT_EQ(h.State(id), JobState::kFailed);
  EXPECT_EQ(h.Stored(id).end_reason, JobEndReason::kUserError);
}

TEST(FactTest, EachIsAcknowledgedOnceStored) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  const int64_t prepare = h.AttemptOf(id, 0);
  const Turn turn = h.Step({WorkerFact{"w", h.session, 4, prepare, h.Table()},
                            WorkerFact{"w", h.session, 5, prepare, facts::FloorReady{"prior", 1}}});
  ASSERT_EQ(turn.acks.size(), 1u);
  EXPECT_EQ(turn.acks[0].worker, "w");
  EXPECT_EQ(turn.acks[0].sequence, 5);
  EXPECT_TRUE(turn.mutations.durable);
}

TEST(FactTest, CopiesChangeNothing) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.PrepareJob(id);
  const int64_t attempt = h.AttemptOf(id, 1);
  facts::Epoch epoch;
  epoch.epoch = 1;
  epoch.epoch_s = 1;
  const std::vector<facts::Fact> told = {
      h.Started(), epoch, h.CheckpointAt(100, 1),
      facts::Decision{DecisionRule::kPrecision, "NaN", "fp16", "fp32"}};
  for (const facts::Fact& fact : told) h.Say(attempt, fact);
  h.Wait(absl::Seconds(3));
  const Job before = h.Stored(id);
  Turn all;
  for (const facts::Fact& fact : told) {
    Turn turn = h.Say(attempt, fact);
    EXPECT_EQ(turn.acks.size(), 1u);
    EXPECT_TRUE(turn.mutations.checkpoints.empty());
    EXPECT_TRUE(turn.mutations.metrics.empty());
  }
  EXPECT_EQ(h.Stored(id).version, before.version);
  EXPECT_EQ(h.Stored(id).decisions.size(), before.decisions.size());
}

TEST(FactTest, OfAnAttemptThatIsOverAreAcknowledgedAndAborted) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 1));
  h.PrepareJob(id);
  const int64_t old = h.AttemptOf(id, 1);
  h.Say(old, h.Ended(AttemptEndReason::kRankDied));
  h.Wait(absl::Seconds(1));
  const int64_t current = h.AttemptOf(id, 1);
  ASSERT_GT(current, old);
  const Job before = h.Stored(id);
  const Turn turn =
      h.Step({h.FactOf(old, h.CheckpointAt(900, 9)), h.FactOf(old, h.Saved(true, true))});
  ASSERT_EQ(turn.stops.size(), 1u);
  EXPECT_EQ(turn.stops[0].attempt, old);
  EXPECT_EQ(turn.stops[0].mode, StopMode::kAbort);
  EXPECT_EQ(turn.acks.size(), 1u);
  EXPECT_TRUE(turn.mutations.jobs.empty());
  EXPECT_TRUE(turn.mutations.checkpoints.empty());
  EXPECT_EQ(h.Stored(id).version, before.version);
}

TEST(FactTest, OfAnotherWorkerAreNotTaken) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  const int64_t prepare = h.AttemptOf(id, 0);
  const Turn turn = h.Say(prepare, h.Table(), "someone");
  EXPECT_TRUE(h.Stored(id).table.table.empty());
  EXPECT_EQ(turn.stops.at(0).worker, "someone");
}

TEST(MetricsTest, ProgressIsShownOftenAndStoredSeldom) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.PrepareJob(id);
  const int64_t attempt = h.AttemptOf(id, 1);
  h.Say(attempt, h.Started());
  size_t stored = 0, signals = 0;
  const int64_t version = h.Stored(id).version;
  for (int i = 0; i < 50; ++i) {
    h.now += absl::Milliseconds(100);
    facts::Progress progressed;
    progressed.step = i;
    progressed.loss = 1.0 / (1 + i);
    progressed.gradient_norm = 2.5;
    const Turn turn = h.Step({WorkerFact{"w", h.session, 0, attempt, progressed}});
    EXPECT_FALSE(turn.mutations.durable && turn.mutations.jobs.empty());
    EXPECT_TRUE(turn.acks.empty());
    ASSERT_EQ(turn.changed.size(), 1u);
    EXPECT_EQ(turn.changed[0]->tasks[1].live->step, i);
    EXPECT_EQ(turn.changed[0]->tasks[1].live->precision, "fp32");
    for (const MetricPoint& point : turn.mutations.metrics) {
      stored += point.name == "loss";
      if (point.name == "gradient_norm") {
        EXPECT_EQ(point.value, 2.5);
        ++signals;
      }
    }
  }
  EXPECT_GE(stored, 2u);
  EXPECT_LE(stored, 3u);
  EXPECT_EQ(signals, stored);
  EXPECT_LE(h.Stored(id).version, version + 3);
}

TEST(MetricsTest, AnEpochLeavesThreePoints) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.PrepareJob(id);
  facts::Epoch epoch;
  epoch.epoch = 1;
  epoch.step = 100;
  epoch.train_loss = 0.5;
  epoch.val_loss = 0.6;
  epoch.val_metric = epoch.best_metric = 0.7;
  epoch.epoch_s = 1;
  const Turn turn = h.Say(h.AttemptOf(id, 1), epoch);
  ASSERT_EQ(turn.mutations.metrics.size(), 3u);
  EXPECT_EQ(turn.mutations.metrics[2].name, "val_metric");
  EXPECT_EQ(turn.mutations.metrics[2].value, 0.7);
  EXPECT_EQ(h.TaskOf(id, 1).epochs_done, 1);
  EXPECT_EQ(*h.TaskOf(id, 1).score, 0.7);
}

TEST(MetricsTest, ALossThatNobodyToldIsNoPoint) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.PrepareJob(id);
  facts::Epoch epoch;
  epoch.epoch = 1;
  epoch.step = 100;
  epoch.val_loss = 0.6;
  epoch.val_metric = epoch.best_metric = 0.7;
  epoch.epoch_s = 1;
  const Turn turn = h.Say(h.AttemptOf(id, 1), epoch);
  ASSERT_EQ(turn.mutations.metrics.size(), 2u);
  EXPECT_EQ(turn.mutations.metrics[0].name, "val_loss");
}

TEST(MetricsTest, TheImportanceOfEachColumnIsAPoint) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.PrepareJob(id);
  facts::Importance importance;
  importance.columns = {"age", "town: size"};
  importance.drops = {0.25, -0.125};
  const Turn turn = h.Say(h.AttemptOf(id, 1), importance);
  ASSERT_EQ(turn.mutations.metrics.size(), 2u);
  EXPECT_EQ(turn.mutations.metrics[0].name, "importance:age");
  EXPECT_EQ(turn.mutations.metrics[0].value, 0.25);
  EXPECT_EQ(turn.mutations.metrics[1].name, "importance:town: size");
  EXPECT_EQ(turn.mutations.metrics[1].fold, 0);
}

TEST(RetryTest, ALostFoldGoesOnFromItsLastCheckpoint) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 1));
  h.PrepareJob(id);
  const int64_t old = h.AttemptOf(id, 1);
  h.Say(old, h.CheckpointAt(250, 2.5));
  h.Say(old, h.CheckpointAt(500, 5));
  h.starts.clear();
  h.Say(old, h.Ended(AttemptEndReason::kRankDied, "signal 9"));
  const auto again = std::find_if(h.starts.begin(), h.starts.end(),
                                  [](const StartCommand& s) { return s.fold == 0; });
  ASSERT_NE(again, h.starts.end());
  EXPECT_EQ(again->resume, "checkpoint-500.json");
  EXPECT_EQ(h.TaskOf(id, 1).epochs_done, 5);
  const Job job = h.Stored(id);
  EXPECT_EQ(job.decisions.back().rule, DecisionRule::kRetry);
  EXPECT_EQ(job.decisions.back().cause, "fold-0: RANK_DIED: signal 9");
  EXPECT_EQ(job.decisions.back().to, "go on from step 500");
  EXPECT_EQ(job.tasks[1].losses, 1);
  EXPECT_EQ(job.tasks[1].failures, 0);
}

TEST(RetryTest, AFoldThatKeepsFailingIsGivenUpAndTheOthersGoOn) {
  CoreHarness h;
  h.Attach("w", 2);
  const std::string id = h.SubmitJob(h.MakeJob("a", 2));
  h.PrepareJob(id);
  for (int i = 0; i < 3; ++i) {
    h.Say(h.AttemptOf(id, 1), h.Ended(AttemptEndReason::kDiverged, "NaN"));
    h.Wait(absl::Seconds(1));
  }
  EXPECT_EQ(h.TaskOf(id, 1).state, TaskState::kFailed);
  EXPECT_EQ(h.TaskOf(id, 2).state, TaskState::kRunning);
  h.FinishFold(id, 1);
  h.Publish(id, Quality::kDegraded);
  const Job job = h.Stored(id);
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.end_reason, JobEndReason::kDiverged);
  EXPECT_EQ(job.end_message, "fold-0: DIVERGED: NaN");
}

TEST(RetryTest, WhereAllFoldsFailTheFloorAnswersAndTheCauseIsTold) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 1));
  h.PrepareJob(id);
  for (int i = 0; i < 3; ++i) {
    h.Say(h.AttemptOf(id, 1), h.Ended(AttemptEndReason::kOutOfMemory, "batch 1"));
    h.Wait(absl::Seconds(1));
  }
  h.Publish(id, Quality::kFloor);
  const Job job = h.Stored(id);
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.prediction->quality, Quality::kFloor);
  EXPECT_EQ(job.end_reason, JobEndReason::kOutOfMemory);
}

TEST(RetryTest, LossesEndAtTheirOwnLimitUnlessThereIsProgress) {
  CoreOptions options;
  options.max_losses = 3;
  CoreHarness h(options);
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 1));
  h.PrepareJob(id);
  for (int i = 0; i < 5; ++i) {
    h.Say(h.AttemptOf(id, 1), h.CheckpointAt(100 * (i + 1), i + 1));
    h.Say(h.AttemptOf(id, 1), h.Ended(AttemptEndReason::kRankDied));
    h.Wait(absl::Seconds(2));
    EXPECT_EQ(h.TaskOf(id, 1).state, TaskState::kRunning) << i;
  }
  for (int i = 0; i < 2; ++i) {
    h.Say(h.AttemptOf(id, 1), h.Ended(AttemptEndReason::kRankDied));
    h.Wait(absl::Seconds(2));
  }
  EXPECT_EQ(h.TaskOf(id, 1).state, TaskState::kFailed);
}

TEST(RetryTest, NothingIsRetriedWhenThereIsNoTimeForIt) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 2));
  h.PrepareJob(id);
  h.FinishFold(id, 0);
  h.Publish(id, Quality::kDegraded);
  const int64_t second = h.AttemptOf(id, 2);
  h.Say(second, h.Started(100));
  h.Say(second, h.Probe(0.1));  // 10 s an epoch
  for (int i = 0; i < 52; ++i) {
    h.Step({WorkerHeartbeat{"w", h.session, {second}}});
    h.Wait(absl::Seconds(1));
  }
  h.Say(second, h.Ended(AttemptEndReason::kRankDied));
  EXPECT_EQ(h.TaskOf(id, 2).state, TaskState::kFailed);
  EXPECT_EQ(h.State(id), JobState::kFinalizing);
}

TEST(RetryTest, AnEarlierAttemptsBetterPredictionsStay) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 1));
  h.PrepareJob(id);
  const int64_t old = h.AttemptOf(id, 1);
  h.Say(old, h.Saved(false, false, 0.9, 8));
  h.Publish(id, Quality::kDegraded);
  h.Say(old, h.Ended(AttemptEndReason::kRankDied));
  h.Wait(absl::Seconds(1));
  const int64_t current = h.AttemptOf(id, 1);
  h.Say(current, h.Saved(false, false, 0.7, 2));
  EXPECT_EQ(h.TaskOf(id, 1).member->attempt, old);
  h.Say(current, h.Saved(true, true, 0.85, 20));
  EXPECT_EQ(h.TaskOf(id, 1).member->attempt, current);
  EXPECT_EQ(h.TaskOf(id, 1).state, TaskState::kDone);
}

TEST(SlotsTest, TwoJobsShareFairly) {
  CoreHarness h;
  h.Attach("w", 2);
  const std::string a = h.SubmitJob(h.MakeJob("a"));
  const std::string b = h.SubmitJob(h.MakeJob("b"));
  const int64_t prepare_a = h.AttemptOf(a, 0), prepare_b = h.AttemptOf(b, 0);
  h.starts.clear();
  h.Step({h.FactOf(prepare_a, h.Table()), h.FactOf(prepare_b, h.Table())});
  EXPECT_EQ(h.TaskOf(a, 1).state, TaskState::kRunning);
  EXPECT_EQ(h.TaskOf(a, 2).state, TaskState::kPending);
  EXPECT_EQ(h.TaskOf(b, 1).state, TaskState::kRunning);
  // The first free slot goes to the Job with fewer gangs.
  h.Say(h.AttemptOf(a, 1), h.Saved(true, true));
  const Turn turn = h.Say(h.AttemptOf(a, 1), h.Ended());
  ASSERT_EQ(turn.starts.size(), 1u);
  EXPECT_EQ(turn.starts[0].job->id, a);
}

TEST(SlotsTest, OneSlotTwoJobsBothGetATurn) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string a = h.SubmitJob(h.MakeJob("a", 2));
  const std::string b = h.SubmitJob(h.MakeJob("b", 2));
  h.Step({h.FactOf(h.AttemptOf(a, 0), h.Table()), h.FactOf(h.AttemptOf(b, 0), h.Table())});
  EXPECT_EQ(h.TaskOf(a, 1).state, TaskState::kRunning);
  EXPECT_EQ(h.State(b), JobState::kPlanning);
  h.Say(h.AttemptOf(a, 1), h.Saved(true, true));
  const Turn turn = h.Say(h.AttemptOf(a, 1), h.Ended());
  ASSERT_EQ(turn.starts.size(), 1u);
  EXPECT_EQ(turn.starts[0].job->id, a);  // the same deadline, and no gang either: older first
}

TEST(SlotsTest, AGangNeedsASlotPerRank) {
  CoreHarness h;
  h.Attach("w", 3);
  Job wide = h.MakeJob("a", 2);
  wide.spec.slots = 2;
  const std::string id = h.SubmitJob(wide);
  const Turn turn = h.Say(h.AttemptOf(id, 0), h.Table());
  ASSERT_EQ(turn.starts.size(), 1u);
  EXPECT_EQ(turn.starts[0].slots, (std::vector<int>{0, 1}));
}

TEST(SlotsTest, AJobWithoutAMatchingWorkerSaysSo) {
  CoreHarness h;
  h.Attach("w", 1);
  Job gpu = h.MakeJob("a");
  gpu.spec.device = "cuda";
  const std::string id = h.SubmitJob(gpu);
  h.PrepareJob(id);
  EXPECT_EQ(h.State(id), JobState::kQueued);
  EXPECT_EQ(h.core().FindJob(id)->pending_reason, PendingReason::kNoMatchingWorker);
  h.Wait(absl::Seconds(61));
  h.Publish(id, Quality::kFloor);
  const Job job = h.Stored(id);
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.end_reason, JobEndReason::kNoWorker);
}

}  // namespace
}  // namespace traind
