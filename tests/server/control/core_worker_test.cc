// Workers that come back, fall silent or die; a traind that was away.
#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

CoreOptions Standalone() {
  CoreOptions options;
  options.standalone = true;
  return options;
}

// A Job with one fold running on worker "w".
struct Running {
  explicit Running(CoreOptions options = {}) : h(options) {
    h.Attach("w", 1);
    id = h.SubmitJob(h.MakeJob("a", 1));
    h.PrepareJob(id);
    attempt = h.AttemptOf(id, 1);
    h.Say(attempt, h.CheckpointAt(100, 1));
  }
  CoreHarness h;
  std::string id;
  int64_t attempt = 0;
};

TEST(WorkerTest, WhatItStillRunsIsAdopted) {
  Running r;
  r.h.Step({WorkerDetached{"w", r.h.session}});
  const Turn turn = r.h.Attach("w", 1, {r.attempt});
  EXPECT_TRUE(turn.starts.empty());
  EXPECT_TRUE(turn.stops.empty());
  r.h.Wait(absl::Seconds(5));
  EXPECT_EQ(r.h.AttemptOf(r.id, 1), r.attempt);
  // It is told the Plan again: what was sent last may not have arrived.
  EXPECT_EQ(r.h.TaskOf(r.id, 1).state, TaskState::kRunning);
}

TEST(WorkerTest, ANewProcessHasLostTheOldOnesAttempts) {
  Running r;
  r.h.Step({WorkerDetached{"w", r.h.session}});
  r.h.starts.clear();
  r.h.Attach("w", 1, {}, "boot-2");
  EXPECT_EQ(r.h.EndOf(r.id, r.attempt), AttemptEndReason::kWorkerLost);
  ASSERT_FALSE(r.h.starts.empty());
  EXPECT_EQ(r.h.starts[0].resume, "checkpoint-100.json");
}

TEST(WorkerTest, TheSameProcessMayStillSayHowItEnded) {
  Running r;
  r.h.Step({WorkerDetached{"w", r.h.session}});
  r.h.Attach("w", 1, {});
  r.h.now += absl::Milliseconds(300);
  r.h.Say(r.attempt, r.h.Saved(true, true));
  r.h.Say(r.attempt, r.h.Ended());
  EXPECT_EQ(r.h.TaskOf(r.id, 1).state, TaskState::kDone);
  EXPECT_EQ(r.h.TaskOf(r.id, 1).member->attempt, r.attempt);
}

TEST(WorkerTest, AStartThatNeverArrivedIsTriedAgainSoon) {
  Running r;
  r.h.Step({WorkerDetached{"w", r.h.session}});
  r.h.Attach("w", 1, {});
  r.h.Wait(absl::Seconds(2));
  EXPECT_GT(r.h.AttemptOf(r.id, 1), r.attempt);
  EXPECT_EQ(r.h.TaskOf(r.id, 1).state, TaskState::kRunning);
}

// The facts without an Ack come before the first heartbeat of a connection: nothing else is on its
// way.
TEST(WorkerTest, AStartThatNeverArrivedIsTriedAgainAtTheFirstHeartbeat) {
  Running r;
  r.h.Step({WorkerDetached{"w", r.h.session}});
  r.h.now += absl::Milliseconds(50);
  r.h.Attach("w", 1, {});
  r.h.Step({WorkerHeartbeat{"w", r.h.session, {}}});
  EXPECT_EQ(r.h.EndOf(r.id, r.attempt), AttemptEndReason::kWorkerLost);
  r.h.Wait(absl::Milliseconds(250));
  EXPECT_GT(r.h.AttemptOf(r.id, 1), r.attempt);
  EXPECT_EQ(r.h.TaskOf(r.id, 1).state, TaskState::kRunning);
}

TEST(WorkerTest, AnEndThatIsToldBeforeTheFirstHeartbeatCounts) {
  Running r;
  r.h.Step({WorkerDetached{"w", r.h.session}});
  r.h.now += absl::Milliseconds(50);
  r.h.Attach("w", 1, {});
  r.h.Say(r.attempt, r.h.Saved(true, true));
  r.h.Say(r.attempt, r.h.Ended());
  r.h.Step({WorkerHeartbeat{"w", r.h.session, {}}});
  EXPECT_EQ(r.h.TaskOf(r.id, 1).state, TaskState::kDone);
}

// It says so before it repeats its facts.
TEST(WorkerTest, TheFirstHeartbeatOfAWorkerThatLeavesLosesNothing) {
  Running r;
  r.h.Step({WorkerDetached{"w", r.h.session}});
  r.h.now += absl::Milliseconds(50);
  r.h.Attach("w", 1, {});
  r.h.Step({WorkerHeartbeat{"w", r.h.session, {}, /*leaving=*/true}});
  r.h.Say(r.attempt, r.h.Saved(true, true));
  r.h.Say(r.attempt, r.h.Ended());
  EXPECT_EQ(r.h.TaskOf(r.id, 1).state, TaskState::kDone);
}

// A traind that lives for 300 ms at a time: the data are read all the same.
TEST(WorkerTest, AStartThatWasLostDoesNotWaitForATraindThatLives) {
  CoreHarness h(Standalone());
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 1));
  const int64_t lost = h.AttemptOf(id, 0);  // traind was killed before it had told the Worker
  std::vector<int64_t> running;
  for (int life = 0; life < 3 && running.empty(); ++life) {
    h.now += absl::Milliseconds(20);
    h.Crash();
    h.starts.clear();
    h.Attach("w", 1, running);
    h.Step({WorkerHeartbeat{"w", h.session, running}});
    h.Wait(absl::Milliseconds(280));
    for (const StartCommand& start : h.starts) running.push_back(start.attempt);
  }
  ASSERT_FALSE(running.empty());
  EXPECT_GT(running.back(), lost);
}

TEST(WorkerTest, SilenceForALeaseLosesIt) {
  Running r;
  r.h.Wait(absl::Seconds(14));
  EXPECT_EQ(r.h.TaskOf(r.id, 1).state, TaskState::kRunning);
  r.h.Wait(absl::Seconds(2));
  EXPECT_EQ(r.h.TaskOf(r.id, 1).state, TaskState::kPending);
  EXPECT_EQ(r.h.State(r.id), JobState::kQueued);
  EXPECT_EQ(r.h.EndOf(r.id, r.attempt), AttemptEndReason::kWorkerLost);
}

TEST(WorkerTest, HeartbeatsRenewTheLease) {
  Running r;
  for (int i = 0; i < 8; ++i) {
    r.h.Wait(absl::Seconds(5));
    r.h.Step({WorkerHeartbeat{"w", r.h.session, {r.attempt}}});
  }
  EXPECT_EQ(r.h.AttemptOf(r.id, 1), r.attempt);
  EXPECT_EQ(r.h.TaskOf(r.id, 1).state, TaskState::kRunning);
}

TEST(WorkerTest, ATraindThatStoodStillDoesNotTakeLeases) {
  Running r;
  const Turn turn = r.h.Step({WorkerHeartbeat{"w", r.h.session, {r.attempt}}});
  // The machine sleeps; the first turn afterwards comes before the heartbeats do.
  r.h.now = turn.next_wakeup + absl::Seconds(25);
  r.h.Step();
  EXPECT_EQ(r.h.TaskOf(r.id, 1).state, TaskState::kRunning);
  r.h.now += absl::Milliseconds(10);
  r.h.Step({WorkerHeartbeat{"w", r.h.session, {r.attempt}}});
  EXPECT_EQ(r.h.AttemptOf(r.id, 1), r.attempt);
}

TEST(WorkerTest, AStandaloneWorkerIsOnlyReplacedWhenDead) {
  Running r(Standalone());
  r.h.Step({WorkerDetached{"w", r.h.session}});
  r.h.Wait(absl::Seconds(30));
  EXPECT_EQ(r.h.TaskOf(r.id, 1).state, TaskState::kRunning);
  r.h.Step({WorkerDied{"w", r.h.session}});
  EXPECT_EQ(r.h.TaskOf(r.id, 1).state, TaskState::kPending);
}

TEST(WorkerTest, ADeathNoticedLateDoesNotHurtTheNextProcess) {
  Running r(Standalone());
  const uint64_t of_the_dead = r.h.session;
  r.h.Attach("w", 1, {}, "boot-2");
  r.h.Wait(absl::Seconds(1));
  ASSERT_EQ(r.h.TaskOf(r.id, 1).state, TaskState::kRunning);
  const int64_t next = r.h.AttemptOf(r.id, 1);
  ASSERT_NE(next, r.attempt);
  r.h.starts.clear();
  r.h.Step({WorkerDied{"w", of_the_dead}});
  EXPECT_EQ(r.h.TaskOf(r.id, 1).state, TaskState::kRunning);
  EXPECT_EQ(r.h.EndOf(r.id, next), AttemptEndReason::kNone);
  r.h.Step({WorkerHeartbeat{"w", r.h.session, {next}}});
  r.h.Wait(absl::Seconds(1));
  EXPECT_EQ(r.h.AttemptOf(r.id, 1), next);
  EXPECT_TRUE(r.h.starts.empty());
}

TEST(WorkerTest, TheEndOfAnOldStreamDoesNotHideANewOne) {
  Running r;
  const uint64_t old = r.h.session;
  r.h.Attach("w", 1, {r.attempt});
  r.h.Step({WorkerDetached{"w", old}});
  r.h.Say(r.attempt, r.h.Saved(true, true));
  EXPECT_EQ(r.h.Stored(r.id).attempts.back().ended_at, absl::InfiniteFuture());
  r.h.SubmitJob(r.h.MakeJob("b"));
  EXPECT_EQ(r.h.starts.back().kind, TaskKind::kPrepare);  // it is there
}

TEST(WorkerTest, StrangersAreAbortedAndTheirSlotsNotUsed) {
  CoreHarness h;
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  const Turn hello = h.Attach("w", 1, {4711});
  ASSERT_EQ(hello.stops.size(), 1u);
  EXPECT_EQ(hello.stops[0].attempt, 4711);
  EXPECT_EQ(hello.stops[0].mode, StopMode::kAbort);
  EXPECT_TRUE(h.Say(h.AttemptOf(id, 0), h.Table()).starts.empty());
  const Turn freed = h.Say(4711, h.Ended(AttemptEndReason::kStale));
  EXPECT_EQ(freed.starts.size(), 1u);
}

TEST(WorkerTest, AnAttemptItDoesNotListForSecondsIsLost) {
  Running r;
  for (int i = 0; i < 9; ++i) {
    r.h.Wait(absl::Seconds(1));
    r.h.Step({WorkerHeartbeat{"w", r.h.session, {}}});
  }
  EXPECT_GT(r.h.AttemptOf(r.id, 1), r.attempt);
}

TEST(WorkerTest, AStaleAttemptInAHeartbeatIsAborted) {
  Running r;
  r.h.Say(r.attempt, r.h.Ended(AttemptEndReason::kRankDied));
  r.h.Wait(absl::Seconds(3));
  const int64_t current = r.h.AttemptOf(r.id, 1);
  const Turn turn = r.h.Step({WorkerHeartbeat{"w", r.h.session, {r.attempt, current}}});
  ASSERT_EQ(turn.stops.size(), 1u);
  EXPECT_EQ(turn.stops[0].attempt, r.attempt);
}

TEST(WorkerTest, AnUnknownFactIsAcknowledgedAndChangesNothing) {
  Running r;
  const Job before = r.h.Stored(r.id);
  for (const int64_t attempt : {r.attempt, int64_t{0}}) {
    const Turn turn = r.h.Say(attempt, std::nullopt);
    ASSERT_EQ(turn.acks.size(), 1u);
    EXPECT_EQ(turn.acks[0].sequence, r.h.sequence);
    EXPECT_TRUE(turn.stops.empty());
  }
  EXPECT_EQ(r.h.Stored(r.id).version, before.version);
  // A fact about an Attempt that is over is as stale as any other.
  EXPECT_EQ(r.h.Say(4711, std::nullopt).stops.size(), 1u);
}

TEST(RestoreTest, RunningAttemptsAreExpectedBack) {
  Running r;
  r.h.Crash();
  EXPECT_TRUE(r.h.Step().starts.empty());
  EXPECT_EQ(r.h.core().FindJob(r.id)->state, JobState::kRunning);
  r.h.now += absl::Seconds(1);
  EXPECT_TRUE(r.h.Attach("w", 1, {r.attempt}).starts.empty());
  r.h.Say(r.attempt, r.h.Saved(true, true));
  EXPECT_EQ(r.h.TaskOf(r.id, 1).state, TaskState::kDone);
}

TEST(RestoreTest, WhoDoesNotComeBackWithinALeaseIsLost) {
  Running r;
  r.h.Crash();
  r.h.Step();
  r.h.Wait(absl::Seconds(16));
  EXPECT_EQ(r.h.TaskOf(r.id, 1).state, TaskState::kPending);
}

TEST(RestoreTest, AfterTheDeadlineNothingIsPlannedAndTheAnswersFoldsCount) {
  Running r;
  r.h.Say(r.attempt, r.h.Started());
  r.h.Say(r.attempt, r.h.Probe(1.0));
  const std::vector<std::string> before = r.h.Rules(r.id);
  r.h.now += absl::Seconds(61);
  r.h.Crash();
  // The Worker has published it meanwhile.
  PublishedPrediction standing = r.h.Prediction(7, Quality::kDegraded, r.h.now - absl::Seconds(2));
  standing.members = {MemberOf(r.attempt, r.h.Saved(false, true))};
  r.h.Step({Published{r.id, standing, true}});
  const Job job = r.h.Stored(r.id);
  EXPECT_EQ(job.state, JobState::kSucceeded);
  std::vector<std::string> rules = r.h.Rules(r.id);
  EXPECT_EQ(rules.back(), "B8") << "names the fold that was stopped meanwhile";
  rules.pop_back();
  EXPECT_EQ(rules, before);
  EXPECT_EQ(job.tasks[1].state, TaskState::kPartial);
  EXPECT_EQ(job.tasks[1].member->attempt, r.attempt);
}

TEST(RestoreTest, NothingIsPlannedBeforeTheWorkersHaveTold) {
  Running r;
  r.h.Say(r.attempt, r.h.Started());
  r.h.Say(r.attempt, r.h.Probe(0.01));
  facts::Epoch epoch;
  epoch.epoch_s = 1;
  for (int i = 1; i <= 3; ++i) {
    epoch.epoch = i;
    r.h.now += absl::Seconds(1);
    r.h.Say(r.attempt, epoch);
  }
  // At 45 of 60 s: 20 epochs could not be done by now, if three were all.
  r.h.now += absl::Seconds(42);
  r.h.Crash();
  r.h.Step();
  r.h.Attach("w", 1, {r.attempt});
  EXPECT_TRUE(r.h.Rules(r.id).empty());
  r.h.Say(r.attempt, r.h.Saved(true, true));
  r.h.Say(r.attempt, r.h.Ended());
  r.h.Wait(absl::Seconds(2));
  EXPECT_TRUE(r.h.Rules(r.id).empty());
  EXPECT_EQ(r.h.TaskOf(r.id, 1).state, TaskState::kDone);
}

TEST(RestoreTest, AttemptNumbersGoOn) {
  Running r;
  r.h.Crash();
  r.h.Attach("w", 1, {}, "boot-2");
  r.h.Wait(absl::Seconds(3));
  EXPECT_GT(r.h.AttemptOf(r.id, 1), r.attempt);
}

TEST(RestoreTest, AClockPutBackDoesNotMoveDeadlines) {
  Running r;
  const absl::Time before = r.h.now;
  r.h.now -= absl::Hours(1);
  r.h.Crash();
  r.h.Step();
  r.h.now += absl::Seconds(61);
  r.h.Step();
  // Counted from where the clock had been.
  r.h.now = before + absl::Seconds(61);
  r.h.Step();
  EXPECT_TRUE(IsTerminal(r.h.State(r.id)));
}

WorkerAttached WithOwnFolder(CoreHarness& h, const std::string& name) {
  WorkerAttached hello = h.Hello(name, 2);
  hello.own_folder = true;
  return hello;
}

TEST(OwnFolderTest, AJobOfTablesIsPreparedAndTrainedThere) {
  CoreHarness h;
  h.Step({WithOwnFolder(h, "w")});
  Job job = h.MakeJob("a", 2);
  job.spec_json = R"({"data": {"train": "/data/train.csv"}})";
  const std::string id = h.SubmitJob(job);
  EXPECT_EQ(h.Say(h.AttemptOf(id, 0), h.Table()).starts.size(), 2u);
}

TEST(OwnFolderTest, SoIsAJobThatRunsAProgram) {
  CoreHarness h;
  h.Step({WithOwnFolder(h, "own")});
  Job program = h.MakeJob("a", 2);
  program.spec_json = R"({"run": {"command": ["sh", "x"]}})";
  ASSERT_EQ(h.core().FindJob(h.SubmitJob(program))->attempts.size(), 1u);
}

// Where much runs, Plans follow the shares of the slots together, a moment later.
TEST(WorkerTest, AFurtherJobBesideManyFoldsAsksForALaterTurn) {
  CoreOptions options;
  options.lease = absl::Minutes(5);
  CoreHarness h(options);
  Job many = h.MakeJob("a", 100);
  many.spec.budget = absl::Minutes(10);
  const std::string id = h.SubmitJob(std::move(many));
  h.Attach("w", 100);
  h.PrepareJob(id);
  h.Wait(absl::Seconds(5));
  const std::string other = h.SubmitJob(h.MakeJob("b"));
  // Its folds join those that share the slots; CoreHarness refuses a turn that wants itself at
  // once.
  const Turn turn = h.Say(h.AttemptOf(other, 0), CoreHarness::Table());
  EXPECT_GT(turn.next_wakeup, h.now);
}

TEST(WorkerTest, AsManyPreparesAsAreAllowedRunAndTheNextComesWhenOneHasEnded) {
  CoreOptions options;
  options.max_prepares = 1;
  CoreHarness h(options);
  std::vector<std::string> jobs;
  for (const char* name : {"a", "b", "c"}) {
    Job job = h.MakeJob(name);
    job.spec.budget = absl::Minutes(10);  // one that is due within a minute does not wait
    jobs.push_back(h.SubmitJob(std::move(job)));
  }
  h.Attach("w", 1);
  for (size_t i = 0; i < jobs.size(); ++i) {
    ASSERT_EQ(h.core().FindJob(jobs[i])->attempts.size(), 1u) << i;
    if (i + 1 < jobs.size()) {
      EXPECT_TRUE(h.core().FindJob(jobs[i + 1])->attempts.empty()) << i;
    }
    const int64_t prepare = h.AttemptOf(jobs[i], 0);
    h.Say(prepare, CoreHarness::Table());
    h.Say(prepare, facts::FloorReady{"prior", 0.5});
    h.Say(prepare, CoreHarness::Ended());
  }
}

TEST(RestoreTest, TenThousandQueuedJobsAreThereAgain) {
  CoreHarness h;
  std::vector<Event> events;
  for (int i = 0; i < 10'000; ++i) {
    Job job = h.MakeJob("r" + std::to_string(i));
    job.request_id.clear();
    events.push_back(Submit{1, job});
  }
  h.Step(std::move(events));
  h.Crash();
  h.Step();
  EXPECT_EQ(h.core().ActiveJobs().size(), 10'000u);
  EXPECT_EQ(h.core().ActiveJobs().front()->id, "job-r0");
  // All are due within a minute; a turn starts a part of them, so that no event waits for all.
  EXPECT_EQ(h.Attach("w", 1).starts.size(), 1'000u);
  EXPECT_EQ(h.Wait(absl::Milliseconds(20)).starts.size(), 9'000u);
}

}  // namespace
}  // namespace traind
