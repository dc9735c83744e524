// Starts another program beside this process.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace traind {

struct ProgramStart {
  std::vector<std::string> arguments;  // the first one is the program's path
  int output = -1;                     // becomes its standard output; -1: that goes nowhere
  std::string error_file;  // its standard error is appended to this file; empty: it is ours
  // Signals to a group or from a terminal reach the group, or session, that a process belongs to.
  enum Group { kOurs, kOwnGroup, kOwnSession };
  Group group = kOurs;
};

// Its standard input is empty, no signal is blocked, and SIGPIPE ends it, whatever this process
// does with signals. Returns the process id; the caller waits for its end.
// Threads: safe. Errors: those of starting it (NotFound, PermissionDenied, ...).
absl::StatusOr<pid_t> StartProgram(const ProgramStart& start);

}  // namespace traind
