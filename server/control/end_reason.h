// Why a Job ended, from what became of its folds.
// Threads: safe, pure.
#pragma once

#include <string>

#include "server/domain/job.h"

namespace traind {

// The Job's word for an Attempt's end that could not be retried.
JobEndReason EndReasonOf(AttemptEndReason reason);

// Whom an Attempt's end is put down to, where its task may be tried again.
enum class Fault {
  kJob,             // it would fail so elsewhere, too
  kInfrastructure,  // processes and machines
  kNone,            // it was told to end
};
Fault FaultOf(AttemptEndReason reason);

struct Ending {
  JobEndReason reason = JobEndReason::kNone;
  std::string message;
};
// For a Job whose folds are all settled. COMPLETED: all that the Plan asked for was
// done. FINISHED_BY_USER. QUOTA_REACHED. BUDGET_REACHED: the clock cut something. Else what folds
// failed of; that also where nothing but the floor is left. `matched`: there are
// Workers with the slots that a fold needs.
Ending EndingOf(const Job& job, bool matched);

// The message of the first fold that was started and left one; empty: there is none. It says what
// was missing where the time of a Job without any answer is over.
std::string WhatWasCut(const Job& job);

// Whether a program failed by itself after it had left what was expected: that answers, and the
// failure is the Job's end reason.
bool FailedWithAnAnswer(const Job& job, const Task& task);

}  // namespace traind
