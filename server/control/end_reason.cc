#include "server/control/end_reason.h"

#include <absl/strings/str_cat.h>

#include "server/domain/names.h"

namespace traind {
namespace {

const Attempt* LastAttempt(const Job& job, const Task& task) {
  for (auto it = job.attempts.rbegin(); it != job.attempts.rend(); ++it) {
    if (it->id == task.attempt) return &*it;
  }
  return nullptr;
}

// Returns why a fold failed by itself; NONE if it ran out of time.
JobEndReason FailureOf(const Job& job, const Task& task) {
  const Attempt* last = LastAttempt(job, task);
  if (!last) return JobEndReason::kNone;
  switch (last->end_reason) {
    case AttemptEndReason::kDataError:
    case AttemptEndReason::kUserError:
    case AttemptEndReason::kDiverged:
    case AttemptEndReason::kOutOfMemory:
    case AttemptEndReason::kStorageFull:
    case AttemptEndReason::kInternal:
      return EndReasonOf(last->end_reason);
    default:
      return task.failures > 0 || task.losses > 1 ? JobEndReason::kRetriesExhausted
                                                  : JobEndReason::kNone;
  }
}

}  // namespace

JobEndReason EndReasonOf(AttemptEndReason reason) {
  switch (reason) {
    case AttemptEndReason::kDataError:
      return JobEndReason::kDataError;
    case AttemptEndReason::kUserError:
      return JobEndReason::kUserError;
    case AttemptEndReason::kDiverged:
      return JobEndReason::kDiverged;
    case AttemptEndReason::kOutOfMemory:
      return JobEndReason::kOutOfMemory;
    case AttemptEndReason::kStorageFull:
      return JobEndReason::kStorageFull;
    case AttemptEndReason::kInternal:
      return JobEndReason::kInternal;
    case AttemptEndReason::kCompleted:
    case AttemptEndReason::kNone:
      return JobEndReason::kNone;
    default:
      return JobEndReason::kRetriesExhausted;
  }
}

bool FailedWithAnAnswer(const Job& job, const Task& task) {
  if (!ProgramTrains(job.spec) || task.state != TaskState::kPartial) return false;
  const JobEndReason reason = FailureOf(job, task);
  // Earlier starts that were lost are no failure of the one that was stopped in time.
  return reason != JobEndReason::kNone && reason != JobEndReason::kRetriesExhausted;
}

Fault FaultOf(AttemptEndReason reason) {
  switch (reason) {
    case AttemptEndReason::kShutdown:
    case AttemptEndReason::kCancelledByUser:
    case AttemptEndReason::kStale:
    case AttemptEndReason::kPreempted:
      return Fault::kNone;
    case AttemptEndReason::kRankDied:
    case AttemptEndReason::kWorkerLost:
    case AttemptEndReason::kCollectiveTimeout:
    case AttemptEndReason::kHung:
      return Fault::kInfrastructure;
    default:
      return Fault::kJob;
  }
}

std::string WhatWasCut(const Job& job) {
  for (const Task& task : job.tasks) {
    const bool cut = task.kind == TaskKind::kTrain && task.attempts > 0 && !IsExtra(task);
    if (cut && !task.message.empty()) return absl::StrCat(TaskName(task), ": ", task.message);
  }
  return "";
}

Ending EndingOf(const Job& job, bool matched) {
  const int planned = job.plans.empty() ? job.spec.folds : job.plans.back().folds;
  bool all_done = true, any_member = false, cut_by_clock = false, ever_started = false;
  Ending failure;
  for (const Task& task : job.tasks) {
    if (task.kind != TaskKind::kTrain) continue;
    ever_started |= task.attempts > 0;
    any_member |= task.member.has_value();
    if (IsExtra(task)) continue;  // one that is missing is no failure
    if (task.fold >= planned && task.state == TaskState::kDropped) continue;
    all_done &= task.state == TaskState::kDone;
    const bool failed = task.state == TaskState::kFailed || FailedWithAnAnswer(job, task);
    if (!failed) {
      cut_by_clock |= task.state == TaskState::kDropped || task.state == TaskState::kPartial;
      continue;
    }
    const JobEndReason reason = FailureOf(job, task);
    if (reason == JobEndReason::kNone) {
      cut_by_clock = true;
    } else if (failure.reason == JobEndReason::kNone) {
      failure = {reason, absl::StrCat(TaskName(task), ": ", task.message)};
    }
  }
  if (all_done) return {JobEndReason::kCompleted, ""};
  if (job.finish_requested) return {JobEndReason::kFinishedByUser, "the user asked to finish"};
  if (job.quota_reached) return {JobEndReason::kQuotaReached, "nothing is left of a quota"};
  if (failure.reason != JobEndReason::kNone && (!any_member || !cut_by_clock)) return failure;
  if (!ever_started && job.tasks[0].attempts == 0) {
    return {JobEndReason::kNoWorker, "no worker was there to take the job"};
  }
  if (!ever_started && !matched) {
    return {JobEndReason::kNoWorker, "no worker had the slots that a fold needs"};
  }
  return {JobEndReason::kBudgetReached, failure.message};
}

}  // namespace traind
