// A Job that waits for others (spec.after) and one of them that is over.
// Threads: safe, pure.
#pragma once

#include <absl/status/status.h>

#include <string>

#include "server/domain/job.h"

namespace traind {

// Whether a Job may begin after that one, which ended in `state`. any_end: however that ended.
// FailedPrecondition: it has not succeeded.
absl::Status MayBeginAfter(const std::string& job, JobState state, bool any_end);

}  // namespace traind
