// Ends the publishing for a Job.
#pragma once

#include <absl/status/status.h>

#include <string>

namespace traind {

// Makes `current` point to prediction-<number> again if a Worker that was cut off has published
// since, removes it if number is 0, and refuses every later Prediction of the Job. Removes the
// folders in which programs of its user worked. Does nothing if the Job has no folder. Waits for
// the Job's publish lock. Threads: safe. Errors: ResourceExhausted, Unavailable (the lock is held),
// Internal.
absl::Status EndPublishing(const std::string& state_dir, const std::string& job, int number);

// FailedPrecondition: EndPublishing was called for the Job. REQUIRES: its publish lock is held.
absl::Status CheckNotEnded(const std::string& state_dir, const std::string& job);

}  // namespace traind
