#include "server/store/commit_checks.h"

#include <absl/strings/str_cat.h>

#include "common/base/status_macros.h"

namespace traind {
namespace {

// model: the fold, trial and seed.
template <class T>
const Task* FindTrain(const Job* job, const T& model) {
  if (job == nullptr) return nullptr;
  for (const Task& task : job->tasks) {
    if (task.kind == TaskKind::kTrain && task.fold == model.fold && task.trial == model.trial &&
        task.seed == model.seed) {
      return &task;
    }
  }
  return nullptr;
}

// Checks that the Attempt was current at some moment of the turn: from the task's Attempt in the
// store up to the one that is about to be stored.
absl::Status CheckFence(const Job& job, int fold, const Task* before, const Task* after,
                        int64_t attempt, absl::string_view what) {
  const int64_t first = before ? before->attempt : after ? after->attempt : 0;
  const int64_t last = after ? after->attempt : first;
  if (attempt > 0 && attempt >= first && attempt <= last) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(what, " of attempt ", attempt, " of job ", job.id,
                                         " fold ", fold, ": the current attempt is ", last));
}

bool SameFiles(const Member& a, const Member& b) {
  return a.attempt == b.attempt && a.oof_sha256 == b.oof_sha256 && a.test_sha256 == b.test_sha256 &&
         a.complete == b.complete && a.epochs_done == b.epochs_done;
}

}  // namespace

absl::Status CheckChange(const Job* before, const Job& after) {
  if (before != nullptr) {
    if (IsTerminal(before->state)) {
      return absl::AbortedError(absl::StrCat("job ", after.id, " is terminal and cannot change"));
    }
    if (after.version <= before->version) {
      return absl::AbortedError(absl::StrCat("job ", after.id, ": version ", after.version,
                                             " does not follow ", before->version));
    }
    if (after.decisions.size() < before->decisions.size() ||
        after.plans.size() < before->plans.size() || after.tasks.size() < before->tasks.size() ||
        after.attempts.size() < before->attempts.size()) {
      return absl::AbortedError(absl::StrCat("job ", after.id, ": its history got shorter"));
    }
  }
  for (const Task& task : after.tasks) {
    if (task.kind != TaskKind::kTrain) continue;
    const Task* old = FindTrain(before, task);
    if (task.member && !(old && old->member && SameFiles(*old->member, *task.member))) {
      RETURN_IF_ERROR(
          CheckFence(after, task.fold, old, &task, task.member->attempt, "predictions"));
    }
    if (task.checkpoint &&
        !(old && old->checkpoint && old->checkpoint->attempt == task.checkpoint->attempt &&
          old->checkpoint->step == task.checkpoint->step)) {
      RETURN_IF_ERROR(
          CheckFence(after, task.fold, old, &task, task.checkpoint->attempt, "checkpoint"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCheckpoint(const Job* before, const Job* after, const Checkpoint& checkpoint) {
  return CheckFence(after ? *after : *before, checkpoint.fold, FindTrain(before, checkpoint),
                    FindTrain(after, checkpoint), checkpoint.attempt, "checkpoint");
}

absl::Status CheckLastAttempt(int64_t stored, int64_t committed) {
  if (committed == 0 || committed >= stored) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat("last attempt ", committed, " is below the stored ", stored));
}

}  // namespace traind
