// The border to LibTorch: its exceptions end here.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <functional>

namespace traind {

// What ended a task, beyond the code of its status.
enum class Fault {
  kNone,
  kOutOfMemory,  // ResourceExhausted
  kCollective,   // Unavailable: a peer is gone, or did not come in time
  kOther,        // Internal
};
Fault FaultOf(const absl::Status& status);

absl::Status OutOfMemoryError(absl::string_view message);
absl::Status CollectiveError(absl::string_view message);

// Runs `body`; an exception out of it becomes a status that FaultOf() knows.
absl::Status Guarded(const std::function<absl::Status()>& body);

}  // namespace traind
