// Workers that are cordoned, drained, or about to leave.
#include <gmock/gmock.h>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

absl::Status Set(CoreHarness& h, const std::string& worker, WorkerMode mode,
                 absl::Duration grace = absl::ZeroDuration()) {
  const Turn turn = h.Step({UpdateWorker{5, worker, mode, grace}});
  h.starts.insert(h.starts.end(), turn.starts.begin(), turn.starts.end());
  h.stops.insert(h.stops.end(), turn.stops.begin(), turn.stops.end());
  return turn.replies.at(0).status;
}

// One fold of a Job runs on "w", which has the only slot.
struct Running {
  Running() {
    h.Attach("w", 1);
    first_session = h.session;
    id = h.SubmitJob(h.MakeJob("a", 2));
    h.PrepareJob(id);
    attempt = h.AttemptOf(id, 1);
    h.Say(attempt, h.CheckpointAt(100, 1));
    h.starts.clear();
    h.stops.clear();
  }
  Turn Beat(bool leaving) {
    return h.Step({WorkerHeartbeat{"w", first_session, {attempt}, leaving}});
  }
  CoreHarness h;
  std::string id;
  int64_t attempt = 0;
  uint64_t first_session = 0;
};

TEST(CoreDrainTest, ACordonedWorkerFinishesWhatItRunsAndGetsNothingNew) {
  Running r;
  ASSERT_EQ(Set(r.h, "w", WorkerMode::kCordoned), absl::OkStatus());
  r.h.Wait(absl::Seconds(1));
  EXPECT_THAT(r.h.stops, IsEmpty());
  r.h.FinishFold(r.id, 0);
  EXPECT_EQ(r.h.TaskOf(r.id, 1).state, TaskState::kDone);
  r.h.Wait(absl::Seconds(1));
  EXPECT_THAT(r.h.starts, IsEmpty());
  EXPECT_EQ(r.h.TaskOf(r.id, 2).state, TaskState::kPending);
  ASSERT_EQ(Set(r.h, "w", WorkerMode::kNone), absl::OkStatus());
  ASSERT_THAT(r.h.starts, SizeIs(1));
  EXPECT_EQ(r.h.starts[0].fold, 1);
}

TEST(CoreDrainTest, ADrainedFoldGoesOnElsewhereFromItsCheckpoint) {
  Running r;
  r.h.Attach("x", 1);
  ASSERT_THAT(r.h.starts, SizeIs(1));  // fold 1 there
  r.h.starts.clear();
  ASSERT_EQ(Set(r.h, "w", WorkerMode::kDraining, absl::Seconds(10)), absl::OkStatus());
  r.h.Wait(absl::Seconds(9));
  EXPECT_THAT(r.h.stops, IsEmpty());
  r.h.Wait(absl::Seconds(2));
  ASSERT_THAT(r.h.stops, SizeIs(1));
  EXPECT_EQ(r.h.stops[0].attempt, r.attempt);
  EXPECT_EQ(r.h.stops[0].mode, StopMode::kDrop);
  EXPECT_EQ(r.h.stops[0].reason, StopReason::kMoved);
  r.h.Say(r.attempt, r.h.CheckpointAt(150, 1.5));
  r.h.Say(r.attempt, r.h.Ended(AttemptEndReason::kShutdown, "its worker is drained"));
  r.h.Wait(absl::Seconds(1));
  EXPECT_THAT(r.h.starts, IsEmpty()) << "the only slot that is open is taken";
  const int64_t other = r.h.AttemptOf(r.id, 2);
  r.h.Say(other, r.h.Saved(true, true), "x");
  r.h.Say(other, r.h.Ended(), "x");
  ASSERT_THAT(r.h.starts, SizeIs(1));
  EXPECT_EQ(r.h.starts[0].worker, "x");
  EXPECT_EQ(r.h.starts[0].fold, 0);
  EXPECT_EQ(r.h.starts[0].resume, "checkpoint-150.json");
  const Decision told = r.h.Stored(r.id).decisions.at(0);
  EXPECT_EQ(told.cause, "fold-0: SHUTDOWN: its worker is drained");
  EXPECT_EQ(told.to, "go on from step 150");
  EXPECT_EQ(r.h.TaskOf(r.id, 1).failures + r.h.TaskOf(r.id, 1).losses, 0);
}

TEST(CoreDrainTest, AWorkerThatIsAwayIsToldWhenItComesBack) {
  Running r;
  r.h.Step({WorkerDetached{"w", r.first_session}});
  ASSERT_EQ(Set(r.h, "w", WorkerMode::kDraining), absl::OkStatus());
  r.h.stops.clear();
  r.h.Attach("w", 1, {r.attempt});
  ASSERT_THAT(r.h.stops, SizeIs(1));
  EXPECT_EQ(r.h.stops[0].reason, StopReason::kMoved);
}

TEST(CoreDrainTest, DataIsReadElsewhere) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 1));
  const int64_t attempt = h.AttemptOf(id, 0);
  h.Attach("x", 1);
  h.starts.clear();
  ASSERT_EQ(Set(h, "w", WorkerMode::kDraining), absl::OkStatus());
  ASSERT_THAT(h.stops, SizeIs(1));
  EXPECT_EQ(h.stops[0].attempt, attempt);
  EXPECT_EQ(h.stops[0].mode, StopMode::kAbort);
  ASSERT_THAT(h.starts, SizeIs(1));
  EXPECT_EQ(h.starts[0].worker, "x");
  EXPECT_EQ(h.starts[0].kind, TaskKind::kPrepare);
  EXPECT_EQ(h.TaskOf(id, 0).losses, 0);
}

TEST(CoreDrainTest, JobsAreToldThatNobodyTakesThem) {
  CoreHarness h;
  h.Attach("w", 1);
  ASSERT_EQ(Set(h, "w", WorkerMode::kCordoned), absl::OkStatus());
  const std::string id = h.SubmitJob(h.MakeJob("a", 1));
  h.Wait(absl::Seconds(2));
  EXPECT_THAT(h.starts, IsEmpty());
  const auto job = h.core().FindJob(id);
  EXPECT_EQ(job->pending_reason, PendingReason::kNoMatchingWorker);
  EXPECT_EQ(job->waits_for, "a Worker; those that are attached take nothing new");
}

TEST(CoreDrainTest, ItHoldsOverARestartOfEither) {
  Running r;
  ASSERT_EQ(Set(r.h, "w", WorkerMode::kDraining, absl::Minutes(5)), absl::OkStatus());
  r.h.Crash();
  const Turn turn = r.h.Step();
  ASSERT_THAT(turn.notes, SizeIs(1));
  EXPECT_EQ(turn.notes[0].mode, WorkerMode::kDraining);
  EXPECT_EQ(turn.notes[0].hostname, "host");
  r.h.Attach("w", 1, {}, "boot-2");
  r.h.Wait(absl::Seconds(2));
  EXPECT_THAT(r.h.starts, IsEmpty());
  ASSERT_EQ(Set(r.h, "w", WorkerMode::kNone), absl::OkStatus());
  r.h.Wait(absl::Seconds(2));
  EXPECT_THAT(r.h.starts, testing::Not(IsEmpty()));
  r.h.Crash();
  EXPECT_THAT(r.h.Step().notes, IsEmpty());
}

TEST(CoreDrainTest, ALeavingWorkerGetsNothingNewUntilItIsStartedAgain) {
  Running r;
  EXPECT_THAT(r.Beat(false).notes, IsEmpty());
  const Turn turn = r.Beat(true);
  ASSERT_THAT(turn.notes, SizeIs(1));
  EXPECT_EQ(turn.notes[0].mode, WorkerMode::kLeaving);
  // What it saves goes on as soon as somebody is there.
  r.h.Say(r.attempt, r.h.Ended(AttemptEndReason::kShutdown, "told to stop"));
  r.h.Wait(absl::Seconds(1));
  EXPECT_THAT(r.h.starts, IsEmpty());
  EXPECT_EQ(r.h.TaskOf(r.id, 1).losses, 0);
  r.h.Step({WorkerDetached{"w", r.first_session}});
  r.h.Attach("w", 1, {}, "boot-2");
  ASSERT_THAT(r.h.starts, SizeIs(1));
  EXPECT_EQ(r.h.starts[0].resume, "checkpoint-100.json");
}

TEST(CoreDrainTest, AnUnknownWorkerIsAnErrorThatNamesThoseThatThereAre) {
  CoreHarness h;
  h.Attach("w1", 1);
  h.Attach("w2", 1);
  const absl::Status status = Set(h, "w3", WorkerMode::kCordoned);
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("no worker has the id w3; there is w1, w2"));
}

}  // namespace
}  // namespace traind
