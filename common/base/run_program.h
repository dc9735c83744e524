// Runs another program to its end and takes what it writes.
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstddef>
#include <string>
#include <vector>

namespace traind {

struct ProgramRun {
  std::string output;  // standard output
  int ended = 0;       // as waitpid tells it
};

// arguments: the program's path first. Its input is empty, its standard error ours.
// Errors: of starting it (NotFound, PermissionDenied, ...); DeadlineExceeded: it was killed
// after `patience`; ResourceExhausted: it was killed as it wrote more than most_bytes.
absl::StatusOr<ProgramRun> RunProgram(const std::vector<std::string>& arguments,
                                      absl::Duration patience, size_t most_bytes);

}  // namespace traind
