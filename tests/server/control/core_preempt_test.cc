// Folds that make room for those of a higher class, and go on later.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

CoreOptions Fast() {
  CoreOptions options;
  options.standalone = true;  // nobody here sends heartbeats
  options.preempt_after = absl::Seconds(5);
  options.preempt_least_run = absl::Seconds(2);
  options.preempt_pause = absl::Minutes(1);
  options.preempt_grace = absl::Seconds(10);
  return options;
}

// A fold of "low", which has no deadline, runs on the only slot.
struct House {
  explicit House(CoreOptions options = Fast()) : h(options) {
    h.Attach("w", 1);
    low = Prepared(Unbounded("low", 0));
    attempt = h.AttemptOf(low, 1);
    h.Wait(absl::Seconds(3));
    Clear();
  }
  static Job Unbounded(const std::string& name, int priority, int folds = 1) {
    Job job = CoreHarness::MakeJob(name, folds);
    job.spec.budget.reset();
    job.spec.priority = priority;
    return job;
  }
  std::string Prepared(Job job) {
    const std::string id = h.SubmitJob(std::move(job));
    h.PrepareJob(id);
    return id;
  }
  void Clear() {
    h.starts.clear();
    h.stops.clear();
  }
  void Go(int64_t step = 150) {
    h.Say(attempt, h.CheckpointAt(step, 1.5));
    h.Say(attempt, h.Ended(AttemptEndReason::kPreempted, "preempted by job-high"));
  }

  CoreHarness h;
  std::string low;
  int64_t attempt = 0;
};

TEST(CorePreemptTest, AFoldGoesForAHigherClassAndGoesOnLater) {
  House r;
  const std::string high = r.Prepared(House::Unbounded("high", 1));
  r.h.Wait(absl::Seconds(4));
  EXPECT_THAT(r.h.stops, IsEmpty()) << "it may still get slots by itself";
  r.h.Wait(absl::Seconds(2));
  ASSERT_THAT(r.h.stops, SizeIs(1));
  EXPECT_EQ(r.h.stops[0].attempt, r.attempt);
  EXPECT_EQ(r.h.stops[0].mode, StopMode::kDrop);
  EXPECT_EQ(r.h.stops[0].reason, StopReason::kPreempted);
  EXPECT_EQ(r.h.stops[0].why, "preempted by job-high");
  r.h.starts.clear();
  r.Go();
  ASSERT_THAT(r.h.starts, SizeIs(1));
  EXPECT_EQ(r.h.starts[0].job->id, high);
  r.h.Wait(absl::Seconds(1));
  r.h.Say(r.h.AttemptOf(high, 1), r.h.CheckpointAt(10, 0.1));

  const auto waits = r.h.core().FindJob(r.low);
  EXPECT_EQ(waits->state, JobState::kQueued);
  EXPECT_THAT(waits->waits_for, HasSubstr("preempted by job-high"));
  const Job stored = r.h.Stored(r.low);
  EXPECT_EQ(stored.attempts.back().end_reason, AttemptEndReason::kPreempted);
  EXPECT_EQ(stored.tasks[1].failures + stored.tasks[1].losses, 0);
  EXPECT_THAT(r.h.Rules(r.low), ElementsAre("preempt"));
  EXPECT_EQ(stored.decisions[0].cause, "fold-0: PREEMPTED: preempted by job-high");
  EXPECT_EQ(stored.decisions[0].to, "go on from step 150 when slots are free");
  EXPECT_THAT(r.h.Rules(high), ElementsAre("preempt"));
  EXPECT_EQ(r.h.Stored(high).decisions[0].from, "fold-0 of job-low (priority 0) runs");

  r.h.starts.clear();
  r.h.FinishFold(high, 0);
  ASSERT_THAT(r.h.starts, SizeIs(1));
  EXPECT_EQ(r.h.starts[0].job->id, r.low);
  EXPECT_EQ(r.h.starts[0].resume, "checkpoint-150.json");
}

TEST(CorePreemptTest, NobodyGoesForAnEqualOne) {
  House r;
  r.Prepared(House::Unbounded("other", 0));
  r.h.Wait(absl::Seconds(60));
  EXPECT_THAT(r.h.stops, IsEmpty());
}

TEST(CorePreemptTest, NobodyGoesWhereItIsTurnedOff) {
  CoreOptions off = Fast();
  off.preempt_after = absl::InfiniteDuration();
  House r(off);
  r.Prepared(House::Unbounded("high", 1));
  r.h.Wait(absl::Seconds(60));
  EXPECT_THAT(r.h.stops, IsEmpty());
}

TEST(CorePreemptTest, OneThatRunsAsksForNoMore) {
  CoreHarness h(Fast());
  h.Attach("w", 2);
  House::Unbounded("low", 0);
  const std::string low = h.SubmitJob(House::Unbounded("low", 0, 2));
  h.PrepareJob(low);
  h.Wait(absl::Seconds(3));
  const std::string high = h.SubmitJob(House::Unbounded("high", 1, 2));
  h.PrepareJob(high);
  h.Wait(absl::Seconds(6));
  ASSERT_THAT(h.stops, SizeIs(1)) << "one gang for it, not all";
  h.Say(h.stops[0].attempt, h.Ended(AttemptEndReason::kPreempted, "preempted by job-high"));
  h.Wait(absl::Seconds(60));
  EXPECT_THAT(h.stops, SizeIs(1));
}

TEST(CorePreemptTest, AFoldRunsForAWhileBeforeItGoesAndGoesOnceInAWhile) {
  CoreOptions options = Fast();
  options.preempt_least_run = absl::Seconds(30);
  House r(options);
  const std::string high = r.Prepared(House::Unbounded("high", 1));
  r.h.Wait(absl::Seconds(20));
  EXPECT_THAT(r.h.stops, IsEmpty());
  r.h.Wait(absl::Seconds(10));
  ASSERT_THAT(r.h.stops, SizeIs(1));
  r.Go();
  r.h.FinishFold(high, 0);
  const int64_t again = r.h.AttemptOf(r.low, 1);
  ASSERT_GT(again, r.attempt);
  r.Clear();
  r.Prepared(House::Unbounded("higher", 2));
  r.h.Wait(absl::Seconds(45));
  EXPECT_THAT(r.h.stops, IsEmpty()) << "it went less than a minute ago";
  r.h.Wait(absl::Seconds(20));
  ASSERT_THAT(r.h.stops, SizeIs(1));
  EXPECT_EQ(r.h.stops[0].attempt, again);
}

TEST(CorePreemptTest, OneThatDoesNotGoIsKilledAfterTheGrace) {
  House r;
  const std::string high = r.Prepared(House::Unbounded("high", 1));
  r.h.Wait(absl::Seconds(6));
  ASSERT_THAT(r.h.stops, SizeIs(1));
  r.h.Wait(absl::Seconds(11));
  ASSERT_THAT(r.h.stops, SizeIs(2));
  EXPECT_EQ(r.h.stops[1].mode, StopMode::kAbort);
  EXPECT_EQ(r.h.Stored(r.low).attempts.back().end_reason, AttemptEndReason::kPreempted);
  EXPECT_EQ(r.h.TaskOf(r.low, 1).state, TaskState::kPending);
  r.h.starts.clear();
  r.h.Say(r.attempt, r.h.Ended(AttemptEndReason::kStale));
  ASSERT_THAT(r.h.starts, SizeIs(1)) << "the slot is free when its Worker says so";
  EXPECT_EQ(r.h.starts[0].job->id, high);
}

TEST(CorePreemptTest, OneThatEndsByItselfIsDone) {
  House r;
  r.Prepared(House::Unbounded("high", 1));
  r.h.Wait(absl::Seconds(6));
  ASSERT_THAT(r.h.stops, SizeIs(1));
  r.h.FinishFold(r.low, 0);
  EXPECT_EQ(r.h.TaskOf(r.low, 1).state, TaskState::kDone);
  EXPECT_THAT(r.h.Rules(r.low), IsEmpty());
}

TEST(CorePreemptTest, AFoldThatCouldNotComeBackInTimeStays) {
  CoreHarness h(Fast());
  h.Attach("w", 1);
  Job job = CoreHarness::MakeJob("low", 1);  // within 60 s
  const std::string low = h.SubmitJob(job);
  h.PrepareJob(low);
  h.Wait(absl::Seconds(40));
  const std::string high = h.SubmitJob(House::Unbounded("high", 1));
  h.PrepareJob(high);
  h.stops.clear();
  h.Wait(absl::Seconds(6));
  for (const StopCommand& stop : h.stops) EXPECT_NE(stop.reason, StopReason::kPreempted);
}

TEST(CorePreemptTest, AStopThatWasLostIsToldAgain) {
  House r;
  r.Prepared(House::Unbounded("high", 1));
  const uint64_t session = r.h.session;
  r.h.Wait(absl::Seconds(6));
  r.h.Step({WorkerDetached{"w", session}});
  r.Clear();
  r.h.Attach("w", 1, {r.attempt});
  r.h.Wait(absl::Seconds(1));
  ASSERT_THAT(r.h.stops, SizeIs(1));
  EXPECT_EQ(r.h.stops[0].reason, StopReason::kPreempted);
}

TEST(CorePreemptTest, AfterARestartItGoesOnAsAfterAnyStop) {
  House r;
  const std::string high = r.Prepared(House::Unbounded("high", 1));
  r.h.Wait(absl::Seconds(6));
  r.h.Crash();
  r.h.Attach("w", 1, {r.attempt});
  r.h.starts.clear();
  r.Go();
  ASSERT_THAT(r.h.starts, SizeIs(1));
  EXPECT_EQ(r.h.starts[0].job->id, high);
  EXPECT_EQ(r.h.TaskOf(r.low, 1).state, TaskState::kPending);
}

}  // namespace
}  // namespace traind
