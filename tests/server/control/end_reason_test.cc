#include "server/control/end_reason.h"

#include <gtest/gtest.h>

namespace traind {
namespace {

Job WithFolds(std::vector<TaskState> states) {
  Job job;
  job.spec.folds = static_cast<int>(states.size());
  job.tasks.resize(1 + states.size());
  job.tasks[0].kind = TaskKind::kPrepare;
  job.tasks[0].state = TaskState::kDone;
  job.tasks[0].attempts = 1;
  for (size_t i = 0; i < states.size(); ++i) {
    Task& task = job.tasks[1 + i];
    task.fold = static_cast<int>(i);
    task.state = states[i];
    if (states[i] == TaskState::kDropped) continue;
    task.attempts = 1;
    task.attempt = static_cast<int64_t>(i) + 1;
    if (states[i] != TaskState::kFailed) task.member.emplace();
  }
  return job;
}
void FailWith(Job& job, int fold, AttemptEndReason reason, int failures) {
  Task& task = job.tasks[1 + static_cast<size_t>(fold)];
  task.failures = failures;
  task.message = "what happened";
  Attempt attempt;
  attempt.id = task.attempt;
  attempt.fold = fold;
  attempt.end_reason = reason;
  job.attempts.push_back(attempt);
}

constexpr TaskState kDone = TaskState::kDone, kPartial = TaskState::kPartial,
                    kDropped = TaskState::kDropped, kFailed = TaskState::kFailed;

TEST(EndReasonTest, AllDoneIsCompleted) {
  EXPECT_EQ(EndingOf(WithFolds({kDone, kDone}), true).reason, JobEndReason::kCompleted);
}

TEST(EndReasonTest, ACutPlanThatWasDoneIsCompletedToo) {
  Job job = WithFolds({kDone, kDone, kDone, kDropped, kDropped});
  Plan& plan = job.plans.emplace_back();
  plan.revision = 1;
  plan.folds = 3;
  plan.epochs = 20;
  EXPECT_EQ(EndingOf(job, true).reason, JobEndReason::kCompleted);
}

TEST(EndReasonTest, WhatTheClockCutIsBudgetReached) {
  EXPECT_EQ(EndingOf(WithFolds({kDone, kPartial}), true).reason, JobEndReason::kBudgetReached);
  EXPECT_EQ(EndingOf(WithFolds({kDone, kDropped}), true).reason, JobEndReason::kBudgetReached);
}

TEST(EndReasonTest, TheUsersWordCounts) {
  Job job = WithFolds({kDone, kPartial});
  job.finish_requested = true;
  EXPECT_EQ(EndingOf(job, true).reason, JobEndReason::kFinishedByUser);
  Job done = WithFolds({kDone});
  done.finish_requested = true;
  EXPECT_EQ(EndingOf(done, true).reason, JobEndReason::kCompleted);
}

TEST(EndReasonTest, WhatFoldsFailedOfIsTold) {
  Job job = WithFolds({kFailed, kFailed});
  FailWith(job, 0, AttemptEndReason::kDiverged, 3);
  FailWith(job, 1, AttemptEndReason::kOutOfMemory, 3);
  const Ending ending = EndingOf(job, true);
  EXPECT_EQ(ending.reason, JobEndReason::kDiverged);
  EXPECT_EQ(ending.message, "fold-0: what happened");
}

TEST(EndReasonTest, AnExtraSeedThatIsMissingChangesNothing) {
  Job job = WithFolds({kDone, kDone, kFailed, kDropped, kPartial});
  for (const size_t task : {3, 4, 5}) job.tasks[task].seed = 1;
  FailWith(job, 2, AttemptEndReason::kDiverged, 3);
  EXPECT_EQ(EndingOf(job, true).reason, JobEndReason::kCompleted);
}

TEST(EndReasonTest, AFoldLostForLackOfTimeIsTheClocks) {
  Job job = WithFolds({kDone, kFailed});
  FailWith(job, 1, AttemptEndReason::kWorkerLost, 0);
  EXPECT_EQ(EndingOf(job, true).reason, JobEndReason::kBudgetReached);
}

TEST(EndReasonTest, NobodyWhoCouldTrainIsNoWorker) {
  Job job = WithFolds({kDropped, kDropped});
  EXPECT_EQ(EndingOf(job, true).reason, JobEndReason::kBudgetReached);
  EXPECT_EQ(EndingOf(job, false).reason, JobEndReason::kNoWorker);
  job.tasks[0].attempts = 0;
  EXPECT_EQ(EndingOf(job, true).reason, JobEndReason::kNoWorker);
}

TEST(EndReasonTest, EveryAttemptsEndHasAWordForTheJob) {
  EXPECT_EQ(EndReasonOf(AttemptEndReason::kStorageFull), JobEndReason::kStorageFull);
  EXPECT_EQ(EndReasonOf(AttemptEndReason::kRankDied), JobEndReason::kRetriesExhausted);
  EXPECT_EQ(EndReasonOf(AttemptEndReason::kNone), JobEndReason::kNone);
}

TEST(EndReasonTest, FaultsAreOfTheJobUnlessAProcessWasLostOrToldToEnd) {
  EXPECT_EQ(FaultOf(AttemptEndReason::kOutOfMemory), Fault::kJob);
  EXPECT_EQ(FaultOf(AttemptEndReason::kCompleted), Fault::kJob);
  EXPECT_EQ(FaultOf(AttemptEndReason::kRankDied), Fault::kInfrastructure);
  EXPECT_EQ(FaultOf(AttemptEndReason::kHung), Fault::kInfrastructure);
  EXPECT_EQ(FaultOf(AttemptEndReason::kCollectiveTimeout), Fault::kInfrastructure);
  EXPECT_EQ(FaultOf(AttemptEndReason::kStale), Fault::kNone);
  EXPECT_EQ(FaultOf(AttemptEndReason::kShutdown), Fault::kNone);
}

}  // namespace
}  // namespace traind
