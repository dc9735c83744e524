// The names of the enumerators of job.h, as in proto/job.proto without prefix: QUEUED,
// BUDGET_REACHED. For messages and the Job's history. Those of an AttemptEndReason are in
// common/facts/reasons.h, those of a Quality in common/publish/prediction.h.
// Threads: safe. What is returned lives for ever.
#pragma once

#include "server/domain/job.h"

namespace traind {

const char* Name(JobState state);
const char* Name(JobEndReason reason);
const char* Name(TaskState state);
const char* Name(PendingReason reason);

// prepare, fold-<k>, or fold-<k>-seed-<s> of its extra seeds.
std::string TaskName(TaskKind kind, int fold, int seed);

}  // namespace traind
