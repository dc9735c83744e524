// A process that the Worker started: its channel, its stderr, its end.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/log.h"
#include "worker/daemon/task.h"
#include "worker/rank_protocol/line_channel.h"

namespace traind::worker {

struct ChildOptions {
  std::string program;            // path
  std::vector<std::string> args;  // after the program's name
  std::vector<std::string> env;   // NAME=value, over this process's own
  int nice = 0;                   // added to this process's own
};

// Leads a process group of its own and dies with the thread that started it
// (PDEATHSIG). Standard input and output are one socketpair, the channel; stderr
// is a pipe that goes to a file, capped, or line by line to this process's log.
// Threads: confined to the thread that starts it, which must outlive it.
class Child {
 public:
  // Errors: Internal with errno in the text; `error` gets the errno.
  static absl::StatusOr<std::unique_ptr<Child>> Start(const ChildOptions& options, int* error);

  // Kills what is left of the group and reaps.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  rank_protocol::LineChannel& channel() { return channel_; }
  // Polls as readable when the process has ended.
  int exit_fd() const { return exit_fd_; }
  int stderr_fd() const { return stderr_fd_; }  // -1: closed

  // SIGKILL to the group.
  void Kill();
  // Its end, once; none while it runs.
  std::optional<ExitStatus> Reap();

  // Where its stderr goes from now on: a file (absolute; appended to), or "" = the log. In the file
  // a line without a moment gets the one at which it is read, and the level of the line before it.
  // Beyond a size its middle is left out: the first part stays, the last part is appended when the
  // log ends.
  void LogTo(const std::string& path);
  // A line of the Worker's own for that file.
  void WriteLog(LogLevel level, absl::string_view line);
  // Moves what is there; never waits.
  void DrainStderr();

 private:
  Child(pid_t pid, int exit_fd, int channel_fd, int stderr_fd);
  void Take(absl::string_view bytes);
  std::string WithHeads(absl::string_view bytes);
  void WriteTail();

  const pid_t pid_;
  const int exit_fd_;
  rank_protocol::LineChannel channel_;
  int stderr_fd_;
  int log_fd_ = -1;
  int64_t log_bytes_ = 0;
  int64_t left_out_ = 0;              // bytes, once that is full
  std::string tail_;                  // the last of these
  std::string line_;                  // unfinished
  std::string start_;                 // of a line that may have a head: not yet written
  bool headed_ = false;               // the open line has one
  LogLevel level_ = LogLevel::kInfo;  // of the last line
  std::string last_line_;             // of this log
  bool reaped_ = false;
};

}  // namespace traind::worker
