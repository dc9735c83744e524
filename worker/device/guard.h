// Converts LibTorch's exceptions to statuses, so that none of them leaves this code.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <functional>

namespace traind {

// The kind of fault that ended a task, in addition to the status code.
enum class Fault {
  kNone,
  kOutOfMemory,  // ResourceExhausted
  kCollective,   // Unavailable: a peer is gone, or was late
  kOther,        // Internal
};
Fault FaultOf(const absl::Status& status);

absl::Status OutOfMemoryError(absl::string_view message);
absl::Status CollectiveError(absl::string_view message);

// Runs `body`. An exception becomes a status with a fault for FaultOf().
absl::Status Guarded(const std::function<absl::Status()>& body);

}  // namespace traind
