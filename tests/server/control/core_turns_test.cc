// Folds that were stopped because other Jobs had to have their turn, and go on when slots are free.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

CoreOptions Patient() {
  CoreOptions options;
  options.lease = absl::Minutes(5);  // no heartbeats
  return options;
}

// Jobs of one fold that takes longer than their window.
struct Turns : CoreHarness {
  explicit Turns(CoreOptions options = Patient()) : CoreHarness(options) {}
  std::string Submit(const std::string& name, int folds = 1, int slots = 1) {
    Job job = MakeJob(name, folds);
    job.spec.epochs = epochs;
    job.spec.slots = slots;
    const std::string id = SubmitJob(job);
    PrepareJob(id);
    return id;
  }
  TaskState FoldOf(const std::string& id, int fold = 0) { return TaskOf(id, 1 + fold).state; }
  // Of steps of which an epoch has 100.
  static facts::Started Resumed(double after) {
    facts::Started started = Started();
    started.first_step = static_cast<int64_t>(100 * after);
    started.start_epoch = static_cast<int>(after);
    return started;
  }
  static facts::Epoch EpochOf(int epoch, double seconds) {
    facts::Epoch done;
    done.epoch = epoch;
    done.step = 100 * epoch;
    done.epoch_s = seconds;
    return done;
  }
  void StopInTime(int64_t attempt, double after, double score) {
    Say(attempt, CheckpointAt(static_cast<int64_t>(100 * after), after));
    Say(attempt, Saved(false, true, score, after));
    Say(attempt, Ended(AttemptEndReason::kStoppedInTime));
    Publish(a, Quality::kDegraded);
  }

  int epochs = 40;
  std::string a, b, c;
};

struct OneSlot : Turns {
  explicit OneSlot(CoreOptions options = Patient()) : Turns(options) { Attach("w", 1); }
};

struct TwoJobs : OneSlot {
  explicit TwoJobs(CoreOptions options = Patient()) : OneSlot(options) {
    a = Submit("a");
    b = Submit("b");
  }
  // The fold of a trains for `seconds`, and its Worker stops it then.
  void TakeTurn(int seconds = 20) {
    const int64_t attempt = AttemptOf(a, 1);
    Say(attempt, Started());
    Say(attempt, Probe(0.02));  // 2 s an epoch
    Wait(absl::Seconds(seconds));
    StopInTime(attempt, seconds / 2.0, 0.8);
  }
  // The same; whole epochs are measured, and it stands just below those of its Plan in the end.
  void TakeMeasuredTurn() {
    const int64_t attempt = AttemptOf(a, 1);
    Say(attempt, Started());
    Say(attempt, Probe(0.02));
    for (int epoch = 1; epoch <= 13; ++epoch) {
      Wait(absl::Seconds(2));
      Say(attempt, EpochOf(epoch, 2));
    }
    Wait(absl::Seconds(1.2));
    StopInTime(attempt, 13.6, 0.8);
  }
};

TEST(CoreTurnsTest, AFoldWhoseTurnWasOverGoesOnWhenTheOtherJobEndsEarly) {
  TwoJobs h;
  h.TakeTurn();
  EXPECT_EQ(h.FoldOf(h.b), TaskState::kRunning);
  EXPECT_EQ(h.State(h.a), JobState::kQueued);
  h.Wait(absl::Seconds(5));
  EXPECT_EQ(h.FoldOf(h.a), TaskState::kPending);
  h.starts.clear();
  h.FinishFold(h.b, 0);
  ASSERT_EQ(h.FoldOf(h.a), TaskState::kRunning);
  ASSERT_EQ(h.starts.size(), 1u);
  EXPECT_EQ(h.starts[0].resume, "checkpoint-1000.json");
  EXPECT_GT(h.starts[0].stop_at, h.now + absl::Seconds(20));
  EXPECT_EQ(h.Stored(h.a).decisions.back().rule, DecisionRule::kB9);
  // What it learns then answers, and its end is that of the Job.
  const int64_t attempt = h.AttemptOf(h.a, 1);
  h.Say(attempt, h.Started());
  h.Wait(absl::Seconds(10));
  h.Say(attempt, h.CheckpointAt(2000, 20));
  h.Say(attempt, h.Saved(true, true, 0.9, 20));
  h.Say(attempt, h.Ended());
  h.Publish(h.a, Quality::kDegraded);
  h.Publish(h.a, Quality::kDegraded);
  EXPECT_EQ(h.State(h.a), JobState::kSucceeded);
  EXPECT_EQ(h.TaskOf(h.a, 1).member->score, 0.9);
}

// Three Jobs of which the first has two folds, one of them cut from its Plan for the others.
struct CutJob : OneSlot {
  // tells: its epochs are measured.
  explicit CutJob(int epochs_asked = 40, bool tells = false) {
    epochs = epochs_asked;
    a = Submit("first", 2);
    b = Submit("second");
    c = Submit("third");
    const int64_t attempt = AttemptOf(a, 1);
    Say(attempt, Started());
    Say(attempt, Probe(0.02));  // 2 s an epoch
    for (int epoch = 1; epoch <= 7; ++epoch) {
      Wait(absl::Seconds(2));
      if (tells) Say(attempt, EpochOf(epoch, 2));
    }
    Say(attempt, CheckpointAt(700, 7));
    Say(attempt, Saved(true, true, 0.8, 7));
    Say(attempt, Ended());
    Publish(a, Quality::kDegraded);
  }
};

TEST(CoreTurnsTest, AFoldThatWasCutForOthersRunsWhenTheyEndEarly) {
  CutJob h;
  EXPECT_EQ(h.Stored(h.a).plans.back().folds, 2);
  EXPECT_EQ(h.TaskOf(h.a, 2).state, TaskState::kPending);
  EXPECT_EQ(h.State(h.a), JobState::kQueued);
  EXPECT_EQ(h.FoldOf(h.b), TaskState::kRunning);
  h.FinishFold(h.b, 0);
  // Those that have no model yet go first.
  EXPECT_EQ(h.FoldOf(h.c), TaskState::kRunning);
  EXPECT_EQ(h.TaskOf(h.a, 2).state, TaskState::kPending);
  h.FinishFold(h.c, 0);
  EXPECT_EQ(h.TaskOf(h.a, 2).state, TaskState::kRunning);
  EXPECT_EQ(h.Stored(h.a).decisions.back().rule, DecisionRule::kB9);
  h.FinishFold(h.a, 1);
  h.Publish(h.a, Quality::kFull);
  EXPECT_EQ(h.TaskOf(h.a, 2).state, TaskState::kDone);
}

TEST(CoreTurnsTest, ACutFoldWaitsOnlyAsLongAsAUsefulModelFits) {
  CutJob h;
  const absl::Time deadline = h.Stored(h.a).deadline;
  while (h.State(h.a) == JobState::kQueued && h.now < deadline) h.Wait(absl::Seconds(1));
  EXPECT_LT(h.now, deadline - absl::Seconds(10));
  EXPECT_EQ(h.TaskOf(h.a, 2).state, TaskState::kDropped);
  const std::vector<std::string> rules = h.Rules(h.a);
  EXPECT_EQ(std::count(rules.begin(), rules.end(), "B4"), 1);
  h.Publish(h.a, Quality::kDegraded);
  EXPECT_EQ(h.State(h.a), JobState::kSucceeded);
}

// What a Plan would say of it changes with the other Jobs, and nothing comes of it.
TEST(CoreTurnsTest, WhileACutFoldWaitsNothingIsPlanned) {
  CutJob h;
  const Job before = h.Stored(h.a);
  h.Wait(absl::Seconds(14));
  h.FinishFold(h.b, 0);
  const std::string d = h.Submit("fourth"), e = h.Submit("fifth");
  Update later;
  later.job = h.a;
  later.budget = absl::Seconds(61);
  h.Step({later});
  h.Wait(absl::Seconds(2));
  const Job job = h.Stored(h.a);
  ASSERT_EQ(job.tasks[2].state, TaskState::kPending);
  EXPECT_EQ(job.plans.size(), before.plans.size());
  EXPECT_EQ(job.decisions.size(), before.decisions.size() + 1);  // the user's
}

TEST(CoreTurnsTest, ACutFoldWaitsOnAfterARestart) {
  CutJob h;
  h.Crash();
  h.Attach("w", 1, {h.AttemptOf(h.b, 1)});
  EXPECT_EQ(h.TaskOf(h.a, 2).state, TaskState::kPending);
  h.FinishFold(h.b, 0);
  EXPECT_EQ(h.FoldOf(h.c), TaskState::kRunning);
  h.FinishFold(h.c, 0);
  EXPECT_EQ(h.TaskOf(h.a, 2).state, TaskState::kRunning);
}

TEST(CoreTurnsTest, ItWaitsBehindFoldsThatHaveNotRun) {
  TwoJobs h;
  h.TakeTurn();
  const std::string c = h.Submit("c");
  h.FinishFold(h.b, 0);
  EXPECT_EQ(h.FoldOf(c), TaskState::kRunning);
  EXPECT_EQ(h.FoldOf(h.a), TaskState::kPending);
}

TEST(CoreTurnsTest, WithoutAFreeSlotTheJobEndsInTimeWithWhatItHas) {
  TwoJobs h;
  h.TakeTurn();
  const absl::Time deadline = h.Stored(h.a).deadline;
  while (h.State(h.a) == JobState::kQueued && h.now < deadline) h.Wait(absl::Seconds(1));
  EXPECT_LT(h.now, deadline);
  EXPECT_EQ(h.FoldOf(h.a), TaskState::kPartial);
  h.Publish(h.a, Quality::kDegraded);
  const Job job = h.Stored(h.a);
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.tasks[1].member->score, 0.8);
  EXPECT_EQ(job.tasks[1].attempts, 1);
}

TEST(CoreTurnsTest, AFoldThatCouldTrainOnlyALittleLongerDoesNotGoOn) {
  TwoJobs h;
  h.TakeTurn(50);  // too little is left for a quarter more
  EXPECT_EQ(h.FoldOf(h.a), TaskState::kPartial);
}

TEST(CoreTurnsTest, AFoldThatRanOutOfPatienceDoesNotGoOn) {
  TwoJobs h;
  const int64_t attempt = h.AttemptOf(h.a, 1);
  h.Say(attempt, h.Started());
  h.Say(attempt, h.Probe(0.02));
  h.Wait(absl::Seconds(20));
  h.Say(attempt, h.CheckpointAt(1000, 10));
  h.Say(attempt, h.Saved(true, true, 0.9, 10));
  h.Say(attempt, h.Ended());
  EXPECT_EQ(h.FoldOf(h.a), TaskState::kDone);
  EXPECT_NE(h.State(h.a), JobState::kQueued);
}

TEST(CoreTurnsTest, AFinishedJobDoesNotGoOn) {
  TwoJobs h;
  h.TakeTurn();
  h.Step({Finish{1, h.a}});
  h.Publish(h.a, Quality::kDegraded);
  EXPECT_EQ(h.State(h.a), JobState::kSucceeded);
  EXPECT_EQ(h.FoldOf(h.a), TaskState::kPartial);
}

// The Plan was made for its turn; a Plan with the same epochs would end it at once.
TEST(CoreTurnsTest, ItGetsTheEpochsThatFitIntoTheTimeThatIsLeft) {
  TwoJobs h;
  h.TakeMeasuredTurn();
  ASSERT_EQ(h.FoldOf(h.a), TaskState::kPending);
  ASSERT_LE(h.Stored(h.a).plans.back().epochs, 15);
  h.Wait(h.Stored(h.a).accepted_at + absl::Seconds(43) - h.now);
  h.starts.clear();
  h.FinishFold(h.b, 0);
  ASSERT_EQ(h.starts.size(), 1u);
  EXPECT_GE(h.starts[0].epochs, 17);
  EXPECT_LE(h.starts[0].epochs,
            13.6 + absl::FDivDuration(h.starts[0].stop_at - h.now, absl::Seconds(2)));
  const Job job = h.Stored(h.a);
  EXPECT_EQ(job.plans.back().epochs, h.starts[0].epochs);
  EXPECT_EQ(job.tasks[1].epochs_planned, h.starts[0].epochs);
  EXPECT_EQ(job.decisions.back().rule, DecisionRule::kB9);
  EXPECT_EQ(job.decisions.back().to, std::to_string(h.starts[0].epochs) + " epochs");
}

// With more epochs than fit it would be stopped in the middle of their schedule.
TEST(CoreTurnsTest, ACutFoldThatStartsLateGetsOnlyTheEpochsThatFit) {
  CutJob h(20, /*tells=*/true);
  h.FinishFold(h.b, 0);
  h.Wait(h.Stored(h.a).accepted_at + absl::Seconds(45) - h.now);
  const int before = h.Stored(h.a).plans.back().epochs;
  h.starts.clear();
  h.FinishFold(h.c, 0);
  ASSERT_EQ(h.starts.size(), 1u);
  EXPECT_LE(h.starts[0].epochs, absl::FDivDuration(h.starts[0].stop_at - h.now, absl::Seconds(2)));
  EXPECT_GE(h.starts[0].epochs, 5);
  EXPECT_LT(h.starts[0].epochs, before);
}

// On two slots two folds of a had their turns; a third one was cut from its Plan.
struct SeveralBack : Turns {
  SeveralBack() {
    epochs = 20;
    Attach("w", 2);
    a = Submit("a", 3);
    b = Submit("b");
    c = Submit("c");
    for (int fold : {0, 1}) {
      Say(AttemptOf(a, 1 + fold), Started());
      Say(AttemptOf(a, 1 + fold), Probe(0.06));  // 6 s an epoch
    }
    for (int epoch = 1; epoch <= 5; ++epoch) {
      Wait(absl::Seconds(6));
      for (int fold : {0, 1}) Say(AttemptOf(a, 1 + fold), EpochOf(epoch, 6));
    }
    for (int fold : {0, 1}) StopInTime(AttemptOf(a, 1 + fold), 5, 0.8);
  }
};

TEST(CoreTurnsTest, SeveralFoldsGoOnSideBySide) {
  SeveralBack h;
  ASSERT_LT(h.Stored(h.a).plans.back().folds, 3);
  for (int fold : {0, 1}) ASSERT_EQ(h.FoldOf(h.a, fold), TaskState::kPending);
  h.FinishFold(h.b, 0);
  EXPECT_EQ(h.FoldOf(h.a, 0), TaskState::kRunning);
  EXPECT_EQ(h.FoldOf(h.a, 1), TaskState::kPending);
  h.FinishFold(h.c, 0);
  EXPECT_EQ(h.FoldOf(h.a, 0), TaskState::kRunning);
  EXPECT_EQ(h.FoldOf(h.a, 1), TaskState::kRunning);
}

// Two folds of a have had their turns on the only slot, and c has it now.
struct TwoBack : OneSlot {
  TwoBack() {
    a = Submit("a", 2);
    b = Submit("b");
    TakeTurn(0, 5);
    if (FoldOf(b) == TaskState::kRunning) FinishFold(b, 0);
    c = Submit("c");
    TakeTurn(1, 4);
    if (FoldOf(b) == TaskState::kRunning) FinishFold(b, 0);
  }
  void TakeTurn(int fold, int after) {
    const int64_t attempt = AttemptOf(a, 1 + fold);
    Say(attempt, Started());
    Say(attempt, Probe(0.02));  // 2 s an epoch
    Wait(absl::Seconds(2 * after));
    StopInTime(attempt, after, 0.8);
  }
  // The rest of its time is c's until then.
  absl::Duration LeftAfter(absl::Duration since) {
    const Job job = Stored(a);
    Wait(job.accepted_at + since - now);
    starts.clear();
    FinishFold(c, 0);
    return job.deadline - now;
  }
};

TEST(CoreTurnsTest, OnOneSlotFoldsThatGoOnShareTheTimeThatIsLeft) {
  TwoBack h;
  for (int fold : {0, 1}) ASSERT_EQ(h.FoldOf(h.a, fold), TaskState::kPending);
  ASSERT_EQ(h.FoldOf(h.c), TaskState::kRunning);
  const absl::Duration left = h.LeftAfter(absl::Seconds(30));
  ASSERT_EQ(h.starts.size(), 1u);
  EXPECT_EQ(h.starts[0].fold, 0);
  EXPECT_LT(h.starts[0].stop_at, h.now + 0.6 * left);
  h.Say(h.AttemptOf(h.a, 1), h.Resumed(5));
  h.Wait(h.starts[0].stop_at - h.now);
  h.StopInTime(h.AttemptOf(h.a, 1), 10, 0.85);
  ASSERT_EQ(h.starts.size(), 2u);
  EXPECT_EQ(h.starts[1].fold, 1);
  EXPECT_GT(h.starts[1].epochs, 4);
}

TEST(CoreTurnsTest, WhereSharesWouldBeTooShortOneFoldGoesOnAlone) {
  TwoBack h;
  const absl::Duration left = h.LeftAfter(absl::Seconds(55.5));
  ASSERT_EQ(h.starts.size(), 1u);
  EXPECT_GT(h.starts[0].stop_at, h.now + 0.6 * left);
}

TEST(CoreTurnsTest, AGangGoesOnAsAGang) {
  Turns h;
  h.Attach("w", 2);
  h.a = h.Submit("a", 1, 2);
  h.b = h.Submit("b", 1, 2);
  const int64_t attempt = h.AttemptOf(h.a, 1);
  h.Say(attempt, h.Started());
  h.Say(attempt, h.Probe(0.02));
  h.Wait(absl::Seconds(20));
  h.StopInTime(attempt, 10, 0.8);
  ASSERT_EQ(h.FoldOf(h.a), TaskState::kPending);
  h.starts.clear();
  h.FinishFold(h.b, 0);
  ASSERT_EQ(h.starts.size(), 1u);
  EXPECT_EQ(h.starts[0].job->id, h.a);
  EXPECT_EQ(h.starts[0].world_size, 2);
}

// Jobs without a deadline go before it, too, whatever has stopped it meanwhile.
TEST(CoreTurnsTest, OneThatMakesRoomStandsBehindAllOthersAgain) {
  CoreOptions options;
  options.standalone = true;  // no heartbeats
  options.preempt_after = absl::Seconds(2);
  options.preempt_least_run = absl::Seconds(2);
  TwoJobs h(options);
  h.TakeTurn();
  h.FinishFold(h.b, 0);
  const int64_t attempt = h.AttemptOf(h.a, 1);
  ASSERT_EQ(h.FoldOf(h.a), TaskState::kRunning);
  h.Say(attempt, h.Resumed(10));
  std::vector<std::string> others;
  for (const int priority : {0, 1}) {
    Job job = h.MakeJob(priority == 0 ? "endless" : "high", 1);
    job.spec.budget.reset();
    job.spec.priority = priority;
    others.push_back(h.SubmitJob(job));
    h.PrepareJob(others.back());
  }
  h.Wait(absl::Seconds(4));
  ASSERT_FALSE(h.stops.empty());
  EXPECT_EQ(h.stops.back().attempt, attempt);
  h.Say(attempt, h.CheckpointAt(1200, 12));
  h.Say(attempt, h.Ended(AttemptEndReason::kPreempted, "preempted by job-high"));
  ASSERT_EQ(h.FoldOf(others[1]), TaskState::kRunning);
  EXPECT_EQ(h.FoldOf(h.a), TaskState::kPending);
  h.FinishFold(others[1], 0);
  EXPECT_EQ(h.FoldOf(others[0]), TaskState::kRunning);
  EXPECT_EQ(h.FoldOf(h.a), TaskState::kPending);
  h.starts.clear();
  h.FinishFold(others[0], 0);
  ASSERT_EQ(h.starts.size(), 1u);
  EXPECT_EQ(h.starts[0].resume, "checkpoint-1200.json");
}

TEST(CoreTurnsTest, APausedJobDoesNotGoOnBeforeItIsResumed) {
  TwoJobs h;
  h.TakeTurn();
  h.Step({Pause{1, h.a}});
  h.FinishFold(h.b, 0);
  EXPECT_EQ(h.State(h.a), JobState::kPaused);
  EXPECT_EQ(h.FoldOf(h.a), TaskState::kPending);
  h.Step({Resume{1, h.a}});
  EXPECT_EQ(h.FoldOf(h.a), TaskState::kRunning);
}

// Like extra seeds: it has had its turn, and those before it may have no model yet.
TEST(CoreTurnsTest, ItWaitsBehindFoldsOfLowerClassesToo) {
  TwoJobs h;
  h.TakeTurn();
  Update update;
  update.job = h.a;
  update.priority = 10;
  h.Step({update});
  const std::string c = h.Submit("c");
  h.FinishFold(h.b, 0);
  EXPECT_EQ(h.FoldOf(c), TaskState::kRunning);
  EXPECT_EQ(h.FoldOf(h.a), TaskState::kPending);
}

// It would go on from its checkpoint.
TEST(CoreTurnsTest, AFoldThatFailedOnceGoesOnToo) {
  OneSlot h;
  h.a = h.Submit("a");
  h.Say(h.AttemptOf(h.a, 1), h.Started());
  h.Say(h.AttemptOf(h.a, 1), h.CheckpointAt(500, 5));
  h.Say(h.AttemptOf(h.a, 1), h.Ended(AttemptEndReason::kDiverged, "NaN"));
  h.Wait(absl::Seconds(1));
  h.b = h.Submit("b");
  const int64_t attempt = h.AttemptOf(h.a, 1);
  ASSERT_EQ(h.FoldOf(h.a), TaskState::kRunning);
  h.Say(attempt, h.Resumed(5));
  h.Say(attempt, h.Probe(0.02));
  h.Wait(absl::Seconds(20));
  h.StopInTime(attempt, 15, 0.8);
  EXPECT_EQ(h.TaskOf(h.a, 1).failures, 1);
  EXPECT_EQ(h.FoldOf(h.a), TaskState::kPending);
}

TEST(CoreTurnsTest, ItsLastCheckpointMayBeToldAfterItsLastPredictions) {
  TwoJobs h;
  const int64_t attempt = h.AttemptOf(h.a, 1);
  h.Say(attempt, h.Started());
  h.Say(attempt, h.Probe(0.02));
  h.Wait(absl::Seconds(20));
  h.Say(attempt, h.Saved(false, true, 0.8, 10));
  h.Say(attempt, h.CheckpointAt(1000, 10));
  h.Say(attempt, h.Ended(AttemptEndReason::kStoppedInTime));
  EXPECT_EQ(h.FoldOf(h.a), TaskState::kPending);
}

// Its Worker is lost after the last predictions and before the end of the Attempt.
TEST(CoreTurnsTest, AFoldWhoseEndWasNotToldDoesNotGoOn) {
  TwoJobs h;
  const int64_t attempt = h.AttemptOf(h.a, 1);
  h.Say(attempt, h.Started());
  h.Say(attempt, h.Probe(0.02));
  h.Wait(absl::Seconds(20));
  h.Say(attempt, h.CheckpointAt(1000, 10));
  h.Say(attempt, h.Saved(false, true, 0.8, 10));
  EXPECT_EQ(h.State(h.a), JobState::kQueued) << "it may go on";
  h.Attach("w", 1, {}, "boot-2");
  EXPECT_EQ(h.FoldOf(h.a), TaskState::kPartial);
  for (int i = 0; i < 2; ++i) h.Publish(h.a, Quality::kDegraded);
  EXPECT_EQ(h.State(h.a), JobState::kSucceeded);
}

// Three Jobs wait for their first gang, and cannot have the slot: its Worker lacks their label.
TEST(CoreTurnsTest, WhereItsTurnWouldBeShortItIsNotStartedAgainAndAgain) {
  Turns h;
  h.Attach("w", 1);
  Job table = h.MakeJob("a", 1);
  table.spec.epochs = 40;
  h.a = h.SubmitJob(table);
  h.PrepareJob(h.a);
  WorkerAttached labelled = h.Hello("labelled", 0);
  labelled.labels = {"rack=a"};
  h.Step({labelled});
  for (const char* name : {"b", "c", "d"}) {
    Job waiting = h.MakeJob(name, 1);
    waiting.spec.constraints.labels = {"rack=a"};
    const std::string id = h.SubmitJob(waiting);
    const int64_t prepare = h.AttemptOf(id, 0);
    h.Say(prepare, h.Table(), "labelled");
    h.Say(prepare, facts::FloorReady{"prior", 0.5}, "labelled");
    h.Say(prepare, h.Ended(), "labelled");
    ASSERT_EQ(h.FoldOf(id), TaskState::kPending);
  }
  double epochs = 0;
  const absl::Time deadline = h.Stored(h.a).deadline;
  while (h.now < deadline - absl::Seconds(15)) {  // then they have no time any more
    if (h.FoldOf(h.a) != TaskState::kRunning) {
      h.Wait(absl::Seconds(1));
      continue;
    }
    const int64_t attempt = h.AttemptOf(h.a, 1);
    h.Say(attempt, h.Resumed(epochs));
    h.Say(attempt, h.Probe(0.02));
    const absl::Duration runs =
        epochs > 0 ? std::min(h.starts.back().stop_at, deadline) - h.now : absl::Seconds(20);
    h.Wait(runs);
    epochs += absl::FDivDuration(runs, absl::Seconds(2));
    h.StopInTime(attempt, epochs, 0.8);
  }
  EXPECT_LE(h.TaskOf(h.a, 1).attempts, 2);
}

TEST(CoreTurnsTest, ItGoesOnAfterARestartOfTraind) {
  TwoJobs h;
  h.TakeTurn();
  h.Crash();
  h.Attach("w", 1, {h.AttemptOf(h.b, 1)});
  EXPECT_EQ(h.FoldOf(h.a), TaskState::kPending);
  h.FinishFold(h.b, 0);
  EXPECT_EQ(h.FoldOf(h.a), TaskState::kRunning);
}

}  // namespace
}  // namespace traind
