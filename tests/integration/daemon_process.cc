#include "tests/integration/daemon_process.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

namespace traind {
namespace {

// Reads the first line of a pipe, without its newline.
absl::StatusOr<std::string> ReadLine(int fd, absl::Duration limit) {
  const absl::Time end = absl::Now() + limit;
  std::string line;
  while (absl::Now() < end) {
    pollfd wait = {fd, POLLIN, 0};
    if (poll(&wait, 1, static_cast<int>(absl::ToInt64Milliseconds(end - absl::Now()))) <= 0) break;
    char byte = 0;
    if (read(fd, &byte, 1) != 1) {
      return absl::InternalError(absl::StrCat("traind ended, having said '", line, "'"));
    }
    if (byte == '\n') return line;
    line += byte;
  }
  return absl::DeadlineExceededError("traind did not get ready");
}

}  // namespace

absl::StatusOr<std::unique_ptr<DaemonProcess>> DaemonProcess::Start(const std::string& binary) {
  auto process = std::unique_ptr<DaemonProcess>(new DaemonProcess);
  char name[] = "/tmp/traind-integration-XXXXXX";
  if (mkdtemp(name) == nullptr) return absl::InternalError("mkdtemp failed");
  process->folder_ = name;

  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::InternalError("pipe2 failed");
  process->output_ = ends[0];
  std::vector<std::string> arguments = {binary,     "--state",     absl::StrCat(name, "/state"),
                                        "--listen", "127.0.0.1:0", "--data-root",
                                        name};
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  // It uses fork, not posix_spawn, because a test that crashes must leave no daemon behind. The
  // child's calls are safe even if other threads run.
  process->pid_ = fork();
  if (process->pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(ends[1], STDOUT_FILENO);
    execv(binary.c_str(), pointers.data());
    _exit(127);
  }
  close(ends[1]);
  if (process->pid_ < 0) return absl::InternalError(absl::StrCat("cannot start ", binary));

  absl::StatusOr<std::string> line = ReadLine(process->output_, absl::Seconds(20));
  if (!line.ok()) return line.status();
  constexpr char kReady[] = "traind ready grpc=";
  if (line->rfind(kReady, 0) != 0) {
    return absl::InternalError(absl::StrCat("traind said '", *line, "'"));
  }
  const size_t begin = sizeof(kReady) - 1;
  process->address_ = line->substr(begin, line->find(' ', begin) - begin);
  return process;
}

DaemonProcess::~DaemonProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (output_ >= 0) close(output_);
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

}  // namespace traind
