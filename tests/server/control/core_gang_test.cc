// Gangs that span Workers: placed, met, lost, and gone on with fewer ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

// Two Workers of two slots, and a Job whose folds need four.
struct TwoHosts {
  explicit TwoHosts(int folds = 1) {
    h.Step({Host("a"), Host("b")});
    Job job = h.MakeJob("wide", folds);
    job.spec.slots = 4;
    id = h.SubmitJob(job);
    prepared_by = h.Stored(id).attempts.at(0).worker;
    const int64_t attempt = h.AttemptOf(id, 0);
    h.starts.clear();
    h.Say(attempt, h.Table(), prepared_by);
    h.Say(attempt, h.Ended(), prepared_by);
    attempt_ = h.AttemptOf(id, 1);
  }
  WorkerAttached Host(const std::string& name, std::vector<int64_t> running = {}) {
    WorkerAttached hello = h.Hello(name, 2, std::move(running));
    hello.hostname = name;
    hello.address = "10.0.0." + std::to_string(name[0]);
    sessions[name] = hello.session;
    return hello;
  }
  std::string Lead() { return h.Stored(id).attempts.back().worker; }
  std::string Other() { return Lead() == "a" ? "b" : "a"; }
  Turn Ready(const std::string& worker, int port) {
    return h.Step({GangReady{worker, sessions[worker], attempt_, port}});
  }
  Turn Beat(const std::string& worker, std::vector<int64_t> running) {
    return h.Step({WorkerHeartbeat{worker, sessions[worker], std::move(running)}});
  }
  std::vector<std::string> Aborted() {
    std::vector<std::string> workers;
    for (const StopCommand& stop : h.stops) {
      if (stop.attempt == attempt_ && stop.mode == StopMode::kAbort) workers.push_back(stop.worker);
    }
    return workers;
  }

  CoreHarness h;
  std::map<std::string, uint64_t> sessions;
  std::string id, prepared_by;
  int64_t attempt_ = 0;
};

TEST(GangTest, BothWorkersGetTheirRanksOfOneAttempt) {
  TwoHosts t;
  ASSERT_EQ(t.h.starts.size(), 2u);
  const StartCommand &lead = t.h.starts[0], &other = t.h.starts[1];
  EXPECT_EQ(lead.worker, t.prepared_by);  // the home of the data leads
  EXPECT_NE(other.worker, lead.worker);
  EXPECT_EQ(lead.attempt, other.attempt);
  EXPECT_EQ(lead.first_rank, 0);
  EXPECT_EQ(other.first_rank, 2);
  EXPECT_EQ(lead.world_size, 4);
  EXPECT_EQ(other.world_size, 4);
  EXPECT_EQ(other.slots, (std::vector<int>{0, 1}));
  const Attempt stored = t.h.Stored(t.id).attempts.back();
  EXPECT_EQ(stored.others, (std::vector<GangPart>{{other.worker, {0, 1}}}));
  EXPECT_EQ(SlotCount(stored), 4);
}

TEST(GangTest, TheRanksMeetAtTheLeadWhenAllPartsAreReady) {
  TwoHosts t;
  EXPECT_TRUE(t.Ready(t.Other(), 4001).meets.empty());
  const Turn turn = t.Ready(t.Lead(), 4002);
  ASSERT_EQ(turn.meets.size(), 2u);
  for (const MeetCommand& meet : turn.meets) {
    EXPECT_EQ(meet.host, "10.0.0." + std::to_string(t.Lead()[0]));
    EXPECT_EQ(meet.port, 4002);
  }
  // The one whose stream broke before it heard asks again.
  const Turn again = t.Ready(t.Other(), 4001);
  ASSERT_EQ(again.meets.size(), 1u);
  EXPECT_EQ(again.meets[0].worker, t.Other());
}

TEST(GangTest, ARestartOfTraindBeforeTheMeetingLosesNothing) {
  TwoHosts t;
  t.Ready(t.Other(), 4001);
  t.h.Crash();
  t.h.Step({t.Host("a", {t.attempt_}), t.Host("b", {t.attempt_})});
  EXPECT_TRUE(t.Ready(t.Other(), 4001).meets.empty());
  EXPECT_EQ(t.Ready(t.Lead(), 4002).meets.size(), 2u);
  EXPECT_EQ(t.h.TaskOf(t.id, 1).state, TaskState::kRunning);
}

TEST(GangTest, OrdersGoToAllParts) {
  TwoHosts t;
  const Turn turn = t.h.CancelJob(t.id);
  ASSERT_EQ(turn.stops.size(), 2u);
  EXPECT_NE(turn.stops[0].worker, turn.stops[1].worker);
}

TEST(GangTest, ALostPartEndsTheAttemptOnAllWorkersAndTheRestGoesOnFromTheCheckpoint) {
  TwoHosts t;
  const std::string lead = t.Lead(), other = t.Other();
  t.h.Say(t.attempt_, t.h.Started(), lead);
  t.h.Say(t.attempt_, t.h.CheckpointAt(50, 0.5), lead);
  t.h.Step({WorkerDetached{other, t.sessions[other]}});
  EXPECT_EQ(t.h.TaskOf(t.id, 1).state, TaskState::kRunning);  // it may come back
  // Its lease ends.
  for (int s = 0; s < 20 && t.h.TaskOf(t.id, 1).state == TaskState::kRunning; ++s) {
    t.h.Wait(absl::Seconds(1));
    t.Beat(lead, {t.attempt_});
  }
  EXPECT_EQ(t.h.Stored(t.id).attempts.at(1).end_reason, AttemptEndReason::kWorkerLost);
  const std::vector<std::string> aborted = t.Aborted();
  EXPECT_EQ(std::count(aborted.begin(), aborted.end(), lead), 1);
  t.h.starts.clear();
  t.h.Wait(absl::Seconds(1));
  EXPECT_TRUE(t.h.starts.empty());  // the lead's slots are not free yet
  t.h.Say(t.attempt_, t.h.Ended(AttemptEndReason::kStale), lead);
  t.h.Wait(absl::Seconds(5));
  ASSERT_EQ(t.h.starts.size(), 1u);
  EXPECT_EQ(t.h.starts[0].worker, lead);
  EXPECT_EQ(t.h.starts[0].world_size, 2);
  EXPECT_EQ(t.h.starts[0].resume, "checkpoint-50.json");
  const Decision told = t.h.Stored(t.id).decisions.back();
  EXPECT_EQ(told.rule, DecisionRule::kB8);
  EXPECT_EQ(told.from + " -> " + told.to, "folds on 4 slots -> on 2 slots");
}

TEST(GangTest, AFailureOnTheOtherWorkerEndsTheAttempt) {
  TwoHosts t;
  t.h.Say(t.attempt_, t.h.Ended(AttemptEndReason::kRankDied, "rank 3 died: signal 9"), t.Other());
  const Attempt ended = t.h.Stored(t.id).attempts.at(1);
  EXPECT_EQ(ended.end_reason, AttemptEndReason::kRankDied);
  EXPECT_EQ(ended.message, "on " + t.Other() + ": rank 3 died: signal 9");
  EXPECT_EQ(t.Aborted(), (std::vector<std::string>{t.Lead(), t.Other()}));
}

// The Worker of the other ranks does not know that the fold has answered.
TEST(GangTest, WhatEndsAfterTheLastPredictionsChangesNothing) {
  for (const bool lost : {true, false}) {
    TwoHosts t;
    t.h.Say(t.attempt_, t.h.Saved(true, true), t.Lead());
    if (lost) {
      t.h.Step({WorkerDied{t.Other(), t.sessions[t.Other()]}});
    } else {
      t.h.Say(t.attempt_, t.h.Ended(AttemptEndReason::kDeadline, "still at work"), t.Other());
    }
    EXPECT_TRUE(t.Aborted().empty());
    t.h.Say(t.attempt_, t.h.Ended(), t.Lead());
    EXPECT_EQ(t.h.EndOf(t.id, t.attempt_), AttemptEndReason::kCompleted);
    EXPECT_EQ(t.h.TaskOf(t.id, 1).state, TaskState::kDone);
  }
}

TEST(GangTest, OnlyRankZeroReports) {
  TwoHosts t;
  t.h.Say(t.attempt_, t.h.Saved(true, true), t.Other());
  EXPECT_FALSE(t.h.TaskOf(t.id, 1).member.has_value());
  t.h.Say(t.attempt_, t.h.Ended(), t.Other());  // it is done a little earlier
  EXPECT_EQ(t.h.TaskOf(t.id, 1).state, TaskState::kRunning);
  t.h.Say(t.attempt_, t.h.Saved(true, true), t.Lead());
  t.h.Say(t.attempt_, t.h.Ended(), t.Lead());
  EXPECT_EQ(t.h.TaskOf(t.id, 1).state, TaskState::kDone);
  EXPECT_TRUE(t.Aborted().empty());
}

TEST(GangTest, SlotsOfAPartAreHeldUntilItHasEnded) {
  TwoHosts t(2);
  t.h.Say(t.attempt_, t.h.Saved(true, true), t.Lead());
  t.h.starts.clear();
  t.h.Say(t.attempt_, t.h.Ended(), t.Lead());
  EXPECT_TRUE(t.h.starts.empty());
  t.h.Say(t.attempt_, t.h.Ended(), t.Other());
  EXPECT_EQ(t.h.starts.size(), 2u);
}

TEST(GangTest, APartThatDoesNotEndIsAborted) {
  TwoHosts t;
  t.h.Say(t.attempt_, t.h.Saved(true, true), t.Lead());
  t.h.Say(t.attempt_, t.h.Ended(), t.Lead());
  t.h.Wait(absl::Seconds(3));
  const Turn turn = t.Beat(t.Other(), {t.attempt_});
  ASSERT_EQ(turn.stops.size(), 1u);
  EXPECT_EQ(turn.stops[0].worker, t.Other());
}

TEST(GangTest, AGangThatHasNotTrainedWaitsAndSaysForHowManySlots) {
  CoreHarness h;
  h.Attach("w", 2);
  Job job = h.MakeJob("wide", 1);
  job.spec.slots = 4;
  const std::string id = h.SubmitJob(job);
  h.PrepareJob(id);
  EXPECT_EQ(h.core().FindJob(id)->pending_reason, PendingReason::kNoMatchingWorker);
  EXPECT_EQ(h.core().FindJob(id)->waits_for, "4 slots; 2 free");
  h.Attach("big", 4);
  EXPECT_EQ(h.TaskOf(id, 1).state, TaskState::kRunning);
  EXPECT_EQ(h.core().FindJob(id)->waits_for, "");
}

// Without a deadline it waits for ever.
TEST(GangTest, WithADeadlineItWaitsUntilTheTimeForAFirstFoldIsOver) {
  for (const bool in_time : {true, false}) {
    CoreHarness h;
    h.Attach("w", 3);
    Job job = h.MakeJob("wide", 2);
    job.spec.budget = in_time ? absl::Seconds(20) : absl::InfiniteDuration();
    job.spec.slots = 4;
    const std::string id = h.SubmitJob(job);
    h.PrepareJob(id);
    h.starts.clear();
    h.Wait(absl::Seconds(3));
    EXPECT_TRUE(h.starts.empty());
    h.Wait(absl::Seconds(2));
    if (!in_time) {
      EXPECT_TRUE(h.starts.empty());
      continue;
    }
    ASSERT_EQ(h.starts.size(), 1u);
    EXPECT_EQ(h.starts[0].world_size, 3);
    const Job stored = h.Stored(id);
    EXPECT_EQ(stored.attempts.back().started_at, stored.accepted_at + absl::Seconds(4));
    ASSERT_EQ(stored.decisions.size(), 1u);
    EXPECT_EQ(stored.decisions[0].rule, DecisionRule::kB3);
    EXPECT_EQ(stored.decisions[0].from, "folds on 4 slots");
    EXPECT_EQ(stored.decisions[0].to, "on 3 slots");
    // Those that come later are for the next fold, and nothing is told.
    h.Attach("big", 4);
    EXPECT_EQ(h.starts.back().world_size, 4);
    EXPECT_EQ(h.Stored(id).decisions.size(), 1u);
  }
}

TEST(GangTest, ToAStandaloneTraindNoOtherWorkersComeSoItWaitsForNone) {
  CoreOptions options;
  options.standalone = true;
  CoreHarness h(options);
  h.Attach("w", 3);
  Job job = h.MakeJob("wide", 1);
  job.spec.budget = absl::InfiniteDuration();
  job.spec.slots = 4;
  const std::string id = h.SubmitJob(job);
  h.PrepareJob(id);
  EXPECT_EQ(h.TaskOf(id, 1).state, TaskState::kRunning);
  EXPECT_EQ(h.starts.back().world_size, 3);
  EXPECT_EQ(h.Stored(id).decisions.back().from, "folds on 4 slots");
}

TEST(GangTest, AShortAbsenceOfAWorkerMakesNoGangSmaller) {
  TwoHosts t;
  const std::string lead = t.Lead(), other = t.Other();
  t.h.Step({WorkerDetached{other, t.sessions[other]}});
  t.h.starts.clear();
  t.h.Say(t.attempt_, t.h.Ended(AttemptEndReason::kCollectiveTimeout), lead);
  t.h.Wait(absl::Seconds(5));
  EXPECT_TRUE(t.h.starts.empty());
  const Turn turn = t.h.Step({t.Host(other)});
  ASSERT_EQ(turn.starts.size(), 2u);
  EXPECT_EQ(turn.starts[0].world_size, 4);
}

}  // namespace
}  // namespace traind
