#include "common/base/run_program.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "common/base/start_program.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

class Patience {
 public:
  explicit Patience(absl::Duration patience)
      : patience_(patience), until_(SystemClock().MonotonicNow() + patience) {}

  // DeadlineExceeded: no time is left.
  absl::StatusOr<absl::Duration> Left() const {
    const absl::Duration left = until_ - SystemClock().MonotonicNow();
    if (left > absl::ZeroDuration()) return left;
    return absl::DeadlineExceededError(
        absl::StrCat("the program did not end within ", absl::FormatDuration(patience_)));
  }

 private:
  const absl::Duration patience_, until_;
};

absl::Status ReadAll(int fd, const Patience& patience, size_t most_bytes, std::string& output) {
  std::string part(1 << 16, '\0');
  while (true) {
    ASSIGN_OR_RETURN(const absl::Duration left, patience.Left());
    constexpr absl::Duration kLongestPoll = absl::Seconds(10);
    pollfd ready{fd, POLLIN, 0};
    const auto wait = absl::ToInt64Milliseconds(std::min(left, kLongestPoll)) + 1;
    if (poll(&ready, 1, static_cast<int>(wait)) <= 0) continue;
    const ssize_t got = read(fd, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "cannot read from a program");
    if (got == 0) return absl::OkStatus();
    if (output.size() + static_cast<size_t>(got) > most_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the program wrote more than ", most_bytes, " bytes"));
    }
    output.append(part, 0, static_cast<size_t>(got));
  }
}

// Waits for a program that has closed its output and is therefore about to end.
absl::Status AwaitEnd(pid_t child, const Patience& patience, int& ended) {
  while (true) {
    const pid_t waited = waitpid(child, &ended, WNOHANG);
    if (waited == child) return absl::OkStatus();
    if (waited < 0 && errno != EINTR) return ErrnoStatus(errno, "cannot wait for a program");
    RETURN_IF_ERROR(patience.Left().status());
    absl::SleepFor(absl::Milliseconds(1));
  }
}

}  // namespace

absl::StatusOr<ProgramRun> RunProgram(const std::vector<std::string>& arguments,
                                      absl::Duration patience, size_t most_bytes) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  const absl::Cleanup close_reading = [&] { close(ends[0]); };
  ProgramStart start;
  start.arguments = arguments;
  start.output = ends[1];
  const absl::StatusOr<pid_t> child = StartProgram(start);
  close(ends[1]);
  RETURN_IF_ERROR(child.status());
  ProgramRun run;
  const Patience left(patience);
  absl::Status status = ReadAll(ends[0], left, most_bytes, run.output);
  if (status.ok()) status = AwaitEnd(*child, left, run.ended);
  if (status.ok()) return run;
  kill(*child, SIGKILL);
  while (waitpid(*child, &run.ended, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace traind
