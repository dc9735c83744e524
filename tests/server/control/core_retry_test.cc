// B13: a retry pays from the same window and changes something.
#include <gmock/gmock.h>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

std::string Train(CoreHarness& h) {
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(CoreHarness::MakeJob("a", 2));
  h.PrepareJob(id);
  h.Say(h.AttemptOf(id, 1), CoreHarness::Started());  // batches of 32
  return id;
}

// The slot may go to the other fold first; then fold 0 waits for it.
void ExpectFoldZeroStartsWithBatch(CoreHarness& h, const std::string& id, int64_t batch) {
  const auto started = [&h] {
    return std::find_if(h.starts.begin(), h.starts.end(),
                        [](const StartCommand& start) { return start.fold == 0; });
  };
  h.Wait(absl::Seconds(1));
  if (started() == h.starts.end()) {
    h.FinishFold(id, 1);
    h.Wait(absl::Seconds(1));
  }
  ASSERT_NE(started(), h.starts.end());
  EXPECT_EQ(started()->batch, batch);
}

TEST(B13RetryTest, WhatFailsByItselfIsTriedWithHalfTheBatch) {
  CoreHarness h;
  const std::string id = Train(h);
  h.Say(h.AttemptOf(id, 1), CoreHarness::Ended(AttemptEndReason::kDiverged, "NaN"));
  EXPECT_EQ(h.Stored(id).decisions.back().to, "start again with batches of 16");
  h.starts.clear();
  ExpectFoldZeroStartsWithBatch(h, id, 16);
}

TEST(B13RetryTest, HalfTheBatchOutlivesACrash) {
  CoreHarness h;
  const std::string id = Train(h);
  h.Say(h.AttemptOf(id, 1), CoreHarness::Ended(AttemptEndReason::kOutOfMemory, "no room"));
  h.Crash();
  h.FinishFold(id, 1);
  h.starts.clear();
  h.Attach("w", 1);
  ExpectFoldZeroStartsWithBatch(h, id, 16);
}

TEST(B13RetryTest, WhatWasLostIsTriedAsItWas) {
  CoreHarness h;
  const std::string id = Train(h);
  h.Say(h.AttemptOf(id, 1), CoreHarness::CheckpointAt(500, 5));
  h.Say(h.AttemptOf(id, 1), CoreHarness::Ended(AttemptEndReason::kRankDied, "signal 9"));
  EXPECT_EQ(h.Stored(id).decisions.back().to, "go on from step 500");
}

// In a pause the fold that waits would take the only slot, and keep it for half of what remains.
TEST(B13RetryTest, WhatIsLostForTheFirstTimeKeepsItsSlot) {
  CoreHarness h;
  const std::string id = Train(h);
  for (const auto next : {TaskState::kRunning, TaskState::kPending}) {
    h.Say(h.AttemptOf(id, 1), CoreHarness::Ended(AttemptEndReason::kRankDied, "signal 9"));
    EXPECT_EQ(h.TaskOf(id, 1).state, next);
  }
  EXPECT_EQ(h.TaskOf(id, 2).state, TaskState::kRunning);
}

// The ranks of its gang may not have met, as traind was not there to tell them where.
TEST(B13RetryTest, WhatHadNoStepWhenItsTimeWasOverIsTriedAgain) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(CoreHarness::MakeJob("a", 2));
  h.PrepareJob(id);
  const int64_t first = h.AttemptOf(id, 1);
  h.Say(first, CoreHarness::Ended(AttemptEndReason::kStoppedInTime));
  EXPECT_EQ(h.TaskOf(id, 1).state, TaskState::kRunning);
  EXPECT_GT(h.AttemptOf(id, 1), first);
  EXPECT_EQ(h.Stored(id).decisions.back().to, "start again");
  // What has trained had its share.
  h.Say(h.AttemptOf(id, 1), CoreHarness::Started());
  h.Say(h.AttemptOf(id, 1), CoreHarness::Ended(AttemptEndReason::kStoppedInTime));
  EXPECT_EQ(h.TaskOf(id, 1).state, TaskState::kFailed);
}

// It waits for its first steps, and not for a further turn (B9).
TEST(B13RetryTest, WhatHadNoStepWhenItsTimeWasOverDoesNotStandBehindAllOthers) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(CoreHarness::MakeJob("a", 1));
  h.PrepareJob(id);
  std::vector<std::string> others;
  for (const char* name : {"b", "c"}) {
    Job job = CoreHarness::MakeJob(name, 1);
    job.spec.budget.reset();
    others.push_back(h.SubmitJob(std::move(job)));
    h.PrepareJob(others.back());
  }
  // An Attempt has told predictions and is lost, the next one does not come to its first step.
  h.Say(h.AttemptOf(id, 1), CoreHarness::Started());
  h.Say(h.AttemptOf(id, 1), CoreHarness::Saved(false, false, 0.7, 3));
  h.Say(h.AttemptOf(id, 1), CoreHarness::Ended(AttemptEndReason::kRankDied, "signal 9"));
  ASSERT_EQ(h.TaskOf(id, 1).state, TaskState::kRunning);
  h.Say(h.AttemptOf(id, 1), CoreHarness::Ended(AttemptEndReason::kStoppedInTime));
  h.Wait(absl::Seconds(1));
  ASSERT_EQ(h.TaskOf(id, 1).state, TaskState::kPending);
  ASSERT_EQ(h.TaskOf(others[0], 1).state, TaskState::kRunning);
  h.FinishFold(others[0], 0);
  EXPECT_EQ(h.TaskOf(id, 1).state, TaskState::kRunning);
  EXPECT_EQ(h.TaskOf(others[1], 1).state, TaskState::kPending);
}

TEST(B13RetryTest, TheDeadlineStaysAndARetryThatComesTooLateIsNotMade) {
  CoreHarness h;
  const std::string id = Train(h);
  const absl::Time deadline = h.Stored(id).deadline;
  h.Wait(absl::Seconds(52));  // 15 % of 60 s are held back
  h.Say(h.AttemptOf(id, 1), CoreHarness::Ended(AttemptEndReason::kRankDied, "signal 9"));
  EXPECT_EQ(h.Stored(id).deadline, deadline);
  EXPECT_TRUE(IsTerminal(h.TaskOf(id, 1).state));
}

TEST(B13RetryTest, TreesAreTriedAgainWhereNoWholeEpochFits) {
  CoreHarness h;
  h.Attach("w", 1);
  Job job = CoreHarness::MakeJob("a", 2);
  job.spec.trials = {{"", "lightgbm", 20, 0}};
  const std::string id = h.SubmitJob(std::move(job));
  h.PrepareJob(id);
  h.Say(h.AttemptOf(id, 1), CoreHarness::Started(1000));
  h.Say(h.AttemptOf(id, 1), CoreHarness::Probe(1.0));  // an epoch takes 1000 s
  h.Say(h.AttemptOf(id, 1), CoreHarness::CheckpointAt(5, 0.005));
  h.Say(h.AttemptOf(id, 1), CoreHarness::Ended(AttemptEndReason::kRankDied, "signal 9"));
  EXPECT_EQ(h.TaskOf(id, 1).state, TaskState::kRunning);
  EXPECT_EQ(h.Stored(id).decisions.back().to, "go on from step 5");
}

TEST(B13RetryTest, AFoldThatIsNotTriedAgainIsADecision) {
  CoreOptions options;
  options.standalone = true;  // silence does not cost its Worker the lease
  CoreHarness h(options);
  const std::string id = Train(h);
  h.Wait(absl::Seconds(56));
  h.Say(h.AttemptOf(id, 1), CoreHarness::Ended(AttemptEndReason::kRankDied, "signal 9"));
  const std::vector<Decision> decisions = h.Stored(id).decisions;
  EXPECT_TRUE(std::any_of(decisions.begin(), decisions.end(), [](const Decision& decision) {
    return decision.rule == DecisionRule::kRetry && decision.to == "too late for another";
  }));
}

TEST(B13RetryTest, FoldsThatAreLostTogetherShareADecision) {
  CoreHarness h;
  h.Attach("w", 3);
  const std::string id = h.SubmitJob(CoreHarness::MakeJob("a", 3));
  h.PrepareJob(id);
  h.Say(h.AttemptOf(id, 2), CoreHarness::CheckpointAt(500, 5));
  h.Step({WorkerDied{"w", h.session}});
  ASSERT_EQ(h.Rules(id), std::vector<std::string>{"retry"});
  const Decision decision = h.Stored(id).decisions.back();
  EXPECT_EQ(decision.cause, "fold-0, fold-1, fold-2: WORKER_LOST: its worker died");
  EXPECT_EQ(decision.from, "attempt 2, attempt 3, attempt 4");
  EXPECT_EQ(decision.to, "start again; fold-1: go on from step 500; fold-2: start again");
}

TEST(B8Test, AFoldThatHadItsShareOfTheTimeIsNamed) {
  CoreHarness h;
  const std::string id = Train(h);
  h.Say(h.AttemptOf(id, 1), CoreHarness::Saved(false, true, 0.9, 17.25));
  h.Say(h.AttemptOf(id, 1), CoreHarness::Ended(AttemptEndReason::kStoppedInTime));
  h.FinishFold(id, 1);
  h.Publish(id, Quality::kDegraded);
  h.Publish(id, Quality::kDegraded);
  ASSERT_EQ(h.State(id), JobState::kSucceeded);
  ASSERT_EQ(h.Rules(id), std::vector<std::string>{"B8"});
  const Decision decision = h.Stored(id).decisions.back();
  EXPECT_EQ(decision.cause, "the time of fold 0 was over; 0 us used");
  EXPECT_EQ(decision.from, "fold 0 with 20 epochs");
  EXPECT_EQ(decision.to, "what there is after 17.2 epochs answers");
}

TEST(B8Test, FoldsThatNobodyHasStoppedBeforeThePredictionIsDueAreNamed) {
  CoreHarness h;
  const std::string id = Train(h);
  h.now += absl::Seconds(59.9);  // nobody ran this loop meanwhile
  h.Crash();
  h.Step();
  const Decision decision = h.Stored(id).decisions.back();
  EXPECT_EQ(decision.rule, DecisionRule::kB8);
  EXPECT_EQ(decision.from, "folds 0, 1 not done");
}

facts::Epoch Epoch(int epoch) {
  facts::Epoch done;
  done.epoch = epoch;
  done.step = 100 * epoch;
  done.epoch_s = 0.1;
  return done;
}

// Fold 0, which has done five epochs, is lost, and starts again from its checkpoint of step 500.
void LoseAndRestart(CoreHarness& h, const std::string& id) {
  const int64_t attempt = h.AttemptOf(id, 1);
  for (int epoch = 1; epoch <= 5; ++epoch) h.Say(attempt, Epoch(epoch));
  h.Say(attempt, CoreHarness::CheckpointAt(500, 5));
  h.starts.clear();
  h.Say(attempt, CoreHarness::Ended(AttemptEndReason::kRankDied, "signal 9"));
  ASSERT_FALSE(h.starts.empty());
  ASSERT_EQ(h.starts.back().fold, 0);
  ASSERT_EQ(h.starts.back().resume, "checkpoint-500.json");
  ASSERT_EQ(h.TaskOf(id, 1).epochs_done, 5);
  h.Wait(absl::Seconds(1));
}

facts::Started StartedAt(int64_t step, int epoch) {
  facts::Started started = CoreHarness::Started();
  started.first_step = step;
  started.start_epoch = epoch;
  return started;
}

TEST(ResumeTest, AnAttemptTellsTheStepAtWhichItBegan) {
  CoreHarness h;
  const std::string id = Train(h);
  EXPECT_EQ(h.Stored(id).attempts[1].first_step, 0);
  LoseAndRestart(h, id);
  EXPECT_EQ(h.Stored(id).attempts.back().first_step, -1) << "it has not begun";
  h.Say(h.AttemptOf(id, 1), StartedAt(500, 5));
  EXPECT_EQ(h.Stored(id).attempts.back().first_step, 500);
  EXPECT_EQ(h.TaskOf(id, 1).epochs_done, 5);
}

TEST(ResumeTest, WhereNoCheckpointCanBeReadTheProgressToldBeginsAfresh) {
  CoreHarness h;
  const std::string id = Train(h);
  LoseAndRestart(h, id);
  const int64_t attempt = h.AttemptOf(id, 1);
  h.Say(attempt, StartedAt(0, 0));
  EXPECT_EQ(h.TaskOf(id, 1).epochs_done, 0);
  EXPECT_FALSE(h.TaskOf(id, 1).checkpoint.has_value());
  h.Say(attempt, Epoch(1));
  EXPECT_EQ(h.TaskOf(id, 1).epochs_done, 1);
  h.Say(attempt, CoreHarness::Ended(AttemptEndReason::kRankDied, "signal 9"));
  EXPECT_EQ(h.Stored(id).decisions.back().to, "start again");
}

TEST(ResumeTest, WhereAnEarlierCheckpointIsReadTheProgressToldIsThatOnes) {
  CoreHarness h;
  const std::string id = Train(h);
  LoseAndRestart(h, id);
  const int64_t attempt = h.AttemptOf(id, 1);
  h.Say(attempt, StartedAt(300, 3));
  EXPECT_EQ(h.TaskOf(id, 1).epochs_done, 3);
  h.Say(attempt, Epoch(4));
  EXPECT_EQ(h.TaskOf(id, 1).epochs_done, 4);
}

}  // namespace
}  // namespace traind
