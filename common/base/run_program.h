// Runs another program to its end and collects its output.
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstddef>
#include <string>
#include <vector>

namespace traind {

struct ProgramRun {
  std::string output;  // standard output
  int ended = 0;       // wait status, as waitpid returns it
};

// arguments begins with the program's path. The program's standard input is empty; it shares our
// standard error. Errors: those of starting it (NotFound, PermissionDenied, ...); DeadlineExceeded:
// it was killed after `patience`; ResourceExhausted: it was killed because it wrote more than
// most_bytes.
absl::StatusOr<ProgramRun> RunProgram(const std::vector<std::string>& arguments,
                                      absl::Duration patience, size_t most_bytes);

}  // namespace traind
