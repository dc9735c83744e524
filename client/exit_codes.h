// The exit status of trainctl; scripts depend on it.
#pragma once

#include <absl/status/status.h>

namespace traind {

enum ExitCode : int {
  kExitOk = 0,
  kExitError = 1,    // also: the Job FAILED under --wait
  kExitUsage = 2,    // wrong command line or spec
  kExitTimeout = 3,  // --timeout passed
  kExitAuth = 4,
  kExitNotFound = 5,
  kExitConflict = 6,  // the request id belongs to another spec
  kExitUnreachable = 7,
  kExitCancelled = 9,     // the Job was cancelled
  kExitInterrupted = 130  // Ctrl-C; the Job continues
};

// Returns the exit code for the outcome of a call.
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace traind
