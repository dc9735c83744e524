// A program of a user that runs: its output, its report lines, its end.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "worker/program/keeper.h"

namespace traind {

// What a user's program is started with.
struct UserProgramStart {
  std::vector<std::string> command;
  std::vector<std::string> environment;  // NAME=value, over this process's own
  std::string folder;                    // absolute
  std::string keeper = "/proc/self/exe";
  bool offline = false;               // it has no network
  std::vector<std::string> writable;  // the folders that it may write to; empty: any
  int64_t largest_file = 0;  // bytes that a file of its may grow to (RLIMIT_FSIZE); 0: no limit
};

// Cuts a stream into lines. A longer line than kMost is given in parts.
class LineCutter {
 public:
  static constexpr size_t kMost = 1 << 16;
  void Add(absl::string_view bytes, const std::function<void(absl::string_view)>& line);
  void Finish(const std::function<void(absl::string_view)>& line);

 private:
  std::string open_;
};

// Threads: confined to one. The destructor kills what still runs.
class RunningProgram {
 public:
  // Called with lines without their newline.
  struct Readers {
    std::function<void(absl::string_view)> output;  // of standard output and error
    std::function<void(absl::string_view)> report;  // of descriptor 3
  };
  // Errors: Internal, ResourceExhausted: the keeper cannot be started. That the program cannot,
  // end() tells.
  // The clock must outlive what is returned.
  static absl::StatusOr<std::unique_ptr<RunningProgram>> Start(const UserProgramStart& start,
                                                               Readers readers,
                                                               const Clock& clock = SystemClock());
  ~RunningProgram();
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  // Waits at most so long for output, lines or the end, and hands over what has come; of what comes
  // without end, only a short while's worth.
  void Poll(absl::Duration most);
  void Order(KeeperOrder order);
  // Set once the program and all that it had started are gone and their output was handed over.
  // Where somebody has killed the keeper, the status is that of a SIGKILL.
  const std::optional<KeeperReport>& end() const { return end_; }

 private:
  RunningProgram(pid_t keeper, int orders, int output, int report, Readers readers,
                 const Clock& clock);
  void Drain(int& descriptor, LineCutter& lines,
             const std::function<void(absl::string_view)>& reader, absl::Duration until);
  void TakeEnd();

  const pid_t keeper_;
  int orders_, output_, report_;  // -1: closed
  const Readers readers_;
  const Clock& clock_;
  LineCutter output_lines_, report_lines_;
  std::optional<KeeperReport> end_;
};

}  // namespace traind
