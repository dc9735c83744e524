#include "server/domain/names.h"

namespace traind {

const char* Name(JobState state) {
  switch (state) {
    case JobState::kQueued:
      return "QUEUED";
    case JobState::kPlanning:
      return "PLANNING";
    case JobState::kRunning:
      return "RUNNING";
    case JobState::kFinalizing:
      return "FINALIZING";
    case JobState::kSucceeded:
      return "SUCCEEDED";
    case JobState::kFailed:
      return "FAILED";
    case JobState::kCancelled:
      return "CANCELLED";
    case JobState::kPaused:
      return "PAUSED";
  }
  return "?";
}

const char* Name(JobEndReason reason) {
  switch (reason) {
    case JobEndReason::kNone:
      return "NONE";
    case JobEndReason::kCompleted:
      return "COMPLETED";
    case JobEndReason::kBudgetReached:
      return "BUDGET_REACHED";
    case JobEndReason::kFinishedByUser:
      return "FINISHED_BY_USER";
    case JobEndReason::kCancelledByUser:
      return "CANCELLED_BY_USER";
    case JobEndReason::kDataError:
      return "DATA_ERROR";
    case JobEndReason::kUserError:
      return "USER_ERROR";
    case JobEndReason::kDiverged:
      return "DIVERGED";
    case JobEndReason::kOutOfMemory:
      return "OUT_OF_MEMORY";
    case JobEndReason::kStorageFull:
      return "STORAGE_FULL";
    case JobEndReason::kRetriesExhausted:
      return "RETRIES_EXHAUSTED";
    case JobEndReason::kNoWorker:
      return "NO_WORKER";
    case JobEndReason::kInternal:
      return "INTERNAL";
    case JobEndReason::kQuotaReached:
      return "QUOTA_REACHED";
    case JobEndReason::kAfterFailed:
      return "AFTER_FAILED";
  }
  return "?";
}

const char* Name(TaskState state) {
  switch (state) {
    case TaskState::kPending:
      return "PENDING";
    case TaskState::kRunning:
      return "RUNNING";
    case TaskState::kDone:
      return "DONE";
    case TaskState::kPartial:
      return "PARTIAL";
    case TaskState::kDropped:
      return "DROPPED";
    case TaskState::kFailed:
      return "FAILED";
  }
  return "?";
}

const char* Name(PendingReason reason) {
  switch (reason) {
    case PendingReason::kNone:
      return "NONE";
    case PendingReason::kResources:
      return "RESOURCES";
    case PendingReason::kPriority:
      return "PRIORITY";
    case PendingReason::kBackoff:
      return "BACKOFF";
    case PendingReason::kNoMatchingWorker:
      return "NO_MATCHING_WORKER";
    case PendingReason::kPreparing:
      return "PREPARING";
    case PendingReason::kQuota:
      return "QUOTA";
    case PendingReason::kOtherJobs:
      return "OTHER_JOBS";
  }
  return "?";
}

std::string WorkersText(const Attempt& attempt) {
  std::string text = attempt.worker;
  for (const GangPart& part : attempt.others) text += " and " + part.worker;
  return text;
}

std::string TaskName(TaskKind kind, int fold, int trial, int seed) {
  switch (kind) {
    case TaskKind::kPrepare:
      return "prepare";
    case TaskKind::kPredict:
      return "predict";
    case TaskKind::kServe:
      return "serve";
    case TaskKind::kTrain:
      break;
  }
  std::string name = "fold-" + std::to_string(fold);
  if (trial > 0) name += "-trial-" + std::to_string(trial);
  if (seed > 0) name += "-seed-" + std::to_string(seed);
  return name;
}

}  // namespace traind
