// Ends the publishing for a Job.
#pragma once

#include <absl/status/status.h>

#include <string>

#include "common/publish/prediction.h"

namespace traind {

// Refuses every later Prediction of the Job, also one that is being written now. Then waits for the
// Job's publish lock, makes `current` point to prediction-<number>, also if a Worker that was cut
// off has published since, and removes it if number is 0; either is durable. The manifest of that
// Prediction says `quality` then, which the end may have lowered. Removes the folders in which
// programs of its user worked. Does nothing if the Job has no folder. Threads: safe. Errors:
// ResourceExhausted, Unavailable (the lock is held), Internal.
absl::Status EndPublishing(const std::string& state_dir, const std::string& job, int number,
                           Quality quality);

// FailedPrecondition: EndPublishing was called for the Job. Threads: safe.
absl::Status CheckNotEnded(const std::string& state_dir, const std::string& job);

}  // namespace traind
