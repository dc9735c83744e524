// Folds that were stopped because other Jobs had to have their turn, and go on when slots are free.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

// A Worker of one slot, and Jobs of one fold that takes longer than their window.
struct OneSlot : CoreHarness {
  static CoreOptions Patient() {
    CoreOptions options;
    options.lease = absl::Minutes(5);  // no heartbeats
    return options;
  }
  OneSlot() : CoreHarness(Patient()) { Attach("w", 1); }
  std::string Submit(const std::string& name, int folds = 1) {
    Job job = MakeJob(name, folds);
    job.spec.epochs = 40;
    const std::string id = SubmitJob(job);
    PrepareJob(id);
    return id;
  }
  TaskState FoldOf(const std::string& id) { return TaskOf(id, 1).state; }

  std::string a, b;
};

struct TwoJobs : OneSlot {
  TwoJobs() {
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
  void StopInTime(int64_t attempt, double epochs, double score) {
    Say(attempt, CheckpointAt(static_cast<int64_t>(100 * epochs), epochs));
    Say(attempt, Saved(false, true, score, epochs));
    Say(attempt, Ended(AttemptEndReason::kStoppedInTime));
    Publish(a, Quality::kDegraded);
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
  CutJob() {
    a = Submit("first", 2);
    b = Submit("second");
    c = Submit("third");
    const int64_t attempt = AttemptOf(a, 1);
    Say(attempt, Started());
    Say(attempt, Probe(0.02));  // 2 s an epoch
    Wait(absl::Seconds(14));
    Say(attempt, CheckpointAt(700, 7));
    Say(attempt, Saved(true, true, 0.8, 7));
    Say(attempt, Ended());
    Publish(a, Quality::kDegraded);
  }
  std::string c;
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
