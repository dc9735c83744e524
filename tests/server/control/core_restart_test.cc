// A restarted core goes on where the one before it was: its stop, its numbers, its clock.
// And Attempts that are over, or another Worker's, cannot change a fold.
#include <gmock/gmock.h>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

CoreOptions Standalone() {
  CoreOptions options;
  options.standalone = true;  // silence does not cost its Worker the lease
  return options;
}

facts::Epoch EpochOf(int epoch) {
  facts::Epoch fact;
  fact.epoch = epoch;
  fact.step = 100 * epoch;
  fact.train_loss = 0.5;
  return fact;
}

TEST(RestartTest, AStopThatWasDecidedIsNotDecidedAgain) {
  CoreHarness h(Standalone());
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 2));
  h.PrepareJob(id);
  const int64_t attempt = h.AttemptOf(id, 1);
  h.Say(attempt, h.Started(100));
  h.Say(attempt, h.Probe(1.0));  // 100 s an epoch, and there are 60 s
  h.Wait(absl::Seconds(44));
  const auto stops = [&h, &id] {
    const std::vector<std::string> rules = h.Rules(id);
    return std::count(rules.begin(), rules.end(), "B5");
  };
  ASSERT_EQ(stops(), 1);
  h.Crash();
  h.Step();
  h.Attach("w", 1, {attempt});
  h.Say(attempt, h.Probe(1.0));
  h.Wait(absl::Seconds(3));
  EXPECT_EQ(h.TaskOf(id, 1).state, TaskState::kRunning);
  EXPECT_EQ(stops(), 1);
}

// The Worker repeats what was not acknowledged; its Attempt has a checkpoint of its own by then.
TEST(RestartTest, AStartThatIsToldAgainTakesNothingBack) {
  CoreHarness h(Standalone());
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 2));
  h.PrepareJob(id);
  const int64_t attempt = h.AttemptOf(id, 1);
  h.Say(attempt, h.Started(100));
  h.Say(attempt, EpochOf(1));
  h.Say(attempt, h.CheckpointAt(100, 1));
  const auto probe_s = h.TaskOf(id, 1).spent.probe_s;
  h.Crash();
  h.Step();
  h.Attach("w", 1, {attempt});
  h.Say(attempt, h.Started(100));
  ASSERT_TRUE(h.TaskOf(id, 1).checkpoint.has_value());
  EXPECT_EQ(h.TaskOf(id, 1).checkpoint->step, 100);
  EXPECT_EQ(h.TaskOf(id, 1).epochs_done, 1);
  EXPECT_EQ(h.TaskOf(id, 1).spent.probe_s, probe_s);
  EXPECT_THAT(h.Say(attempt, EpochOf(1)).mutations.metrics, testing::IsEmpty());
  EXPECT_THAT(h.Say(attempt, EpochOf(2)).mutations.metrics, testing::SizeIs(3));
}

// traind, its Worker and the machine may end before the Worker has told of a checkpoint.
TEST(RestartTest, AFoldGoesOnFromACheckpointThatWasFoundOnTheDisk) {
  CoreHarness h(Standalone());
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 2));
  h.PrepareJob(id);
  const int64_t attempt = h.AttemptOf(id, 1);
  h.Say(attempt, h.Started(100));
  h.Crash();
  h.Step({CheckpointFound{attempt, h.CheckpointAt(700, 7)}});
  EXPECT_EQ(h.Stored(id).tasks[1].checkpoint->step, 700);
  EXPECT_EQ(h.Stored(id).tasks[1].checkpoint->attempt, attempt);
  h.starts.clear();
  h.Attach("w", 1, {}, "boot-2");
  h.Wait(absl::Seconds(3));
  ASSERT_FALSE(h.starts.empty());
  EXPECT_EQ(h.starts[0].fold, 0);
  EXPECT_EQ(h.starts[0].resume, "checkpoint-700.json");
  EXPECT_EQ(h.TaskOf(id, 1).epochs_done, 7);
  // What is found of an Attempt that is over is of no use.
  h.Step({CheckpointFound{attempt, h.CheckpointAt(900, 9)}});
  EXPECT_EQ(h.TaskOf(id, 1).checkpoint->step, 700);
}

TEST(RestartTest, ACheckpointThatWasFoundOnTheDiskIsNotTakenBackByItsStart) {
  CoreHarness h(Standalone());
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 2));
  h.PrepareJob(id);
  const int64_t attempt = h.AttemptOf(id, 1);
  h.Crash();
  h.Step({CheckpointFound{attempt, h.CheckpointAt(700, 7)}});
  h.Attach("w", 1, {attempt});
  h.Say(attempt, h.Started(100));
  ASSERT_TRUE(h.TaskOf(id, 1).checkpoint.has_value());
  EXPECT_EQ(h.TaskOf(id, 1).checkpoint->step, 700);
  h.Say(attempt, h.CheckpointAt(500, 5));
  EXPECT_EQ(h.TaskOf(id, 1).checkpoint->step, 700);
  h.Say(attempt, h.CheckpointAt(800, 8));
  EXPECT_EQ(h.TaskOf(id, 1).checkpoint->step, 800);
}

// The Attempt could not read the checkpoint that it was given, and began afresh.
TEST(RestartTest, WhereACheckpointWasFoundOnTheDiskAStartThatFellBackStillTakesTheProgressBack) {
  CoreHarness h(Standalone());
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 2));
  h.PrepareJob(id);
  h.Say(h.AttemptOf(id, 1), h.Started(100));
  for (int epoch = 1; epoch <= 10; ++epoch) h.Say(h.AttemptOf(id, 1), EpochOf(epoch));
  h.Say(h.AttemptOf(id, 1), h.CheckpointAt(1000, 10));
  h.Say(h.AttemptOf(id, 1), h.Ended(AttemptEndReason::kRankDied, "signal 9"));
  const int64_t attempt = h.AttemptOf(id, 1);
  ASSERT_EQ(h.TaskOf(id, 1).state, TaskState::kRunning);
  ASSERT_EQ(h.TaskOf(id, 1).epochs_done, 10);
  h.Crash();
  h.Step({CheckpointFound{attempt, h.CheckpointAt(300, 3)}});
  h.Attach("w", 1, {attempt});
  h.Say(attempt, h.Started(100));
  EXPECT_EQ(h.TaskOf(id, 1).epochs_done, 0);
  EXPECT_EQ(h.TaskOf(id, 1).checkpoint->step, 300);
  h.Say(attempt, EpochOf(1));
  EXPECT_EQ(h.TaskOf(id, 1).epochs_done, 1);
}

TEST(RestartTest, TheImportanceOfColumnsThatIsToldAgainIsStoredOnce) {
  CoreHarness h(Standalone());
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 2));
  h.PrepareJob(id);
  const int64_t attempt = h.AttemptOf(id, 1);
  facts::Importance importance;
  importance.columns = {"age", "town"};
  importance.drops = {0.25, -0.125};
  h.Say(attempt, h.Started(100));
  EXPECT_THAT(h.Say(attempt, importance).mutations.metrics, testing::SizeIs(2));
  EXPECT_THAT(h.Say(attempt, importance).mutations.metrics, testing::IsEmpty());
  h.Crash();
  h.Step();
  h.Attach("w", 1, {attempt});
  EXPECT_THAT(h.Say(attempt, importance).mutations.metrics, testing::IsEmpty());
}

TEST(RestartTest, NumbersOfAttemptsWhoseJobsHaveEndedAreNotGivenAgain) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string first = h.SubmitJob(h.MakeJob("a", 1));
  h.PrepareJob(first);
  h.FinishFold(first, 0);
  h.Publish(first, Quality::kFull);
  ASSERT_TRUE(IsTerminal(h.State(first)));
  const int64_t last = h.AttemptOf(first, 1);
  h.Crash();
  h.Attach("w", 1, {}, "boot-2");
  const std::string second = h.SubmitJob(h.MakeJob("b", 1));
  EXPECT_GT(h.AttemptOf(second, 0), last);
}

// traind may have been killed between the commit of the end and the word to the disk.
TEST(RestartTest, TheDiskIsToldAgainOfJobsThatEndedJustBefore) {
  CoreHarness h(Standalone());
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 1));
  h.PrepareJob(id);
  h.FinishFold(id, 0);
  h.Publish(id, Quality::kFull);
  ASSERT_TRUE(IsTerminal(h.State(id)));
  h.Crash();
  EXPECT_THAT(h.Step().ended, testing::ElementsAre(id));
  h.now += 2 * kEndedLately;
  h.SubmitJob(h.MakeJob("b"));
  h.Crash();
  EXPECT_THAT(h.Step().ended, testing::IsEmpty());
}

TEST(RestartTest, TimeGoesOnFromWhatWasStoredWhereTheClockWasPutBack) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string before = h.SubmitJob(h.MakeJob("a"));
  h.now -= absl::Hours(1);
  h.Crash();
  const std::string after = h.SubmitJob(h.MakeJob("b"));
  EXPECT_GE(h.Stored(after).accepted_at, h.Stored(before).accepted_at);
  EXPECT_GE(h.Stored(after).deadline, h.Stored(before).deadline);
}

TEST(B13RetryTest, AFoldThatFailedTwiceFromACheckpointStartsAfresh) {
  CoreHarness h(Standalone());
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 1));
  h.PrepareJob(id);
  h.Say(h.AttemptOf(id, 1), h.CheckpointAt(500, 5));
  for (const char* resume : {"checkpoint-500.json", ""}) {
    h.Say(h.AttemptOf(id, 1), h.Ended(AttemptEndReason::kDiverged, "NaN"));
    h.starts.clear();
    h.Wait(absl::Seconds(3));
    ASSERT_EQ(h.starts.size(), 1u);
    EXPECT_EQ(h.starts[0].resume, resume);
  }
  EXPECT_EQ(h.Stored(id).decisions.back().to, "start again");
}

TEST(StaleFactTest, AnAttemptThatGoesOnAfterItsEndIsAborted) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 1));
  h.PrepareJob(id);
  const int64_t attempt = h.AttemptOf(id, 1);
  ASSERT_EQ(h.CancelJob(id).stops.size(), 1u);
  ASSERT_EQ(h.State(id), JobState::kCancelled);
  const Turn turn = h.Say(attempt, facts::Progress());  // the abort was lost
  ASSERT_EQ(turn.stops.size(), 1u);
  EXPECT_EQ(turn.stops[0].attempt, attempt);
  EXPECT_EQ(turn.stops[0].mode, StopMode::kAbort);
}

TEST(StaleFactTest, AnotherWorkersWordOnAnAttemptDoesNotCount) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 1));
  h.PrepareJob(id);
  const int64_t attempt = h.AttemptOf(id, 1);
  h.Attach("other", 1);
  const Turn turn = h.Say(attempt, h.Saved(true, true), "other");
  EXPECT_EQ(h.TaskOf(id, 1).state, TaskState::kRunning);
  EXPECT_FALSE(h.TaskOf(id, 1).member.has_value());
  ASSERT_EQ(turn.stops.size(), 1u);
  EXPECT_EQ(turn.stops[0].worker, "other");
}

}  // namespace
}  // namespace traind
