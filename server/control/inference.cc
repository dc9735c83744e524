// Jobs that predict or serve with another Job's models: one task, which waits for no slot.
// The Rank publishes; what it published stands whoever dies.
#include <absl/strings/str_cat.h>

#include "server/control/control_core_impl.h"
#include "server/control/end_reason.h"
#include "server/domain/names.h"

namespace traind {

void ControlCore::Impl::AdvanceInference(JobEntry& entry) {
  const bool finishes = entry.view().finish_requested && !OpenAttempt(entry.view().tasks[0]);
  if (now_ >= FinalizeAt(entry)) AskDisk(entry);
  if (finishes) FinishInference(entry);
  // Its Worker ends it at the deadline; what it has told by then counts.
  if (!IsTerminal(entry.view().state) && now_ >= SettleAt(entry)) {
    ConcludeInference(entry, JobEndReason::kBudgetReached, "the time was over");
  }
  UpdateQueues(entry);
}

// A Rank may have published, and what tells of it is with a Worker that nobody hears.
void ControlCore::Impl::FinishInference(JobEntry& entry) {
  const Job& job = entry.view();
  const bool predicted = job.tasks[0].kind == TaskKind::kPredict && !job.attempts.empty();
  if (predicted && !HasAnswer(job)) {
    AskDisk(entry);
    if (!entry.publication.disk_told && now_ < entry.publication.disk_by) return;
  }
  const std::string message = job.tasks[0].message;
  ConcludeInference(entry, JobEndReason::kFinishedByUser, message);
}

void ControlCore::Impl::InferenceEnded(JobEntry& entry, AttemptEndReason reason,
                                       const std::string& message) {
  const bool serves = entry.view().tasks[0].kind == TaskKind::kServe;
  if (entry.view().finish_requested) {
    Task& task = EditDurably(entry).tasks[0];
    task.state = TaskState::kPending;  // AdvanceInference ends the Job
    task.message = message;
    entry.publication.asked_disk = entry.publication.disk_told = false;
    return;
  }
  switch (reason) {
    case AttemptEndReason::kCompleted:
      if (!serves && !HasAnswer(entry.view())) {
        // Its Prediction is on disk: what tells of it was lost with a traind.
        entry.publication.asked_disk = false;
        return RetryOrSettle(entry, 0, Fault::kInfrastructure, reason,
                             "it ended without an answer");
      }
      return ConcludeInference(entry, JobEndReason::kCompleted, "");
    case AttemptEndReason::kFinishedByUser:
      return ConcludeInference(entry, JobEndReason::kFinishedByUser, message);
    case AttemptEndReason::kStoppedInTime:
    case AttemptEndReason::kDeadline:
      return ConcludeInference(entry, JobEndReason::kBudgetReached, message);
    case AttemptEndReason::kDataError:
    case AttemptEndReason::kUserError:
      // The same again would end the same.
      return ConcludeInference(entry, EndReasonOf(reason), message);
    default:
      return RetryOrSettle(entry, 0, FaultOf(reason), reason, message);
  }
}

// A Prediction of some models is an answer, whatever came then.
void ControlCore::Impl::ConcludeInference(JobEntry& entry, JobEndReason reason,
                                          const std::string& message) {
  const Job& job = entry.view();
  const bool serves = job.tasks[0].kind == TaskKind::kServe;
  const bool good =
      HasAnswer(job) ||
      (serves && (reason == JobEndReason::kCompleted || reason == JobEndReason::kFinishedByUser));
  EditDurably(entry).tasks[0].state = good ? TaskState::kDone : TaskState::kFailed;
  if (LiveAttempt* live = OpenAttempt(entry.view().tasks[0])) {
    SendStop(*live, StopMode::kAbort, StopReason::kJobOver, "the job is over");
    CloseAttempt(*live, AttemptEndReason::kDeadline, "the job ended");
  }
  End(entry, good ? JobState::kSucceeded : JobState::kFailed, reason, message);
}

}  // namespace traind
