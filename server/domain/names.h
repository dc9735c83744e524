// The names of the enumerators of job.h, as in proto/job.proto without prefix: QUEUED,
// BUDGET_REACHED. For messages and the Job's history. Those of an AttemptEndReason are in
// common/facts/reasons.h, those of a Quality in common/publish/prediction.h.
// Threads: safe. What is returned lives for ever.
#pragma once

#include <string>

#include "server/domain/job.h"

namespace traind {

const char* Name(JobState state);
const char* Name(JobEndReason reason);
const char* Name(TaskState state);
const char* Name(PendingReason reason);

// prepare, fold-<k>, or fold-<k>-trial-<t>-seed-<s>, without those of them that are 0.
std::string TaskName(TaskKind kind, int fold, int trial, int seed);
// The Workers of an Attempt, the one of rank 0 first: "a", or "a and b".
std::string WorkersText(const Attempt& attempt);
// of: a Task or an Attempt.
template <class T>
std::string TaskName(const T& of) {
  return TaskName(of.kind, of.fold, of.trial, of.seed);
}

// 3, or "3 trial 1 seed 2" without those of them that are 0. of: whatever has fold, trial and seed.
template <class T>
std::string ModelText(const T& of) {
  return std::to_string(of.fold) + (of.trial > 0 ? " trial " + std::to_string(of.trial) : "") +
         (of.seed > 0 ? " seed " + std::to_string(of.seed) : "");
}

}  // namespace traind
