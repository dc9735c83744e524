#include "worker/daemon/child.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "common/base/log.h"
#include "common/base/log_format.h"

extern char** environ;

namespace traind::worker {
namespace {

constexpr int64_t kMaxLogBytes = 16 << 20;
constexpr size_t kTailBytes = 64 << 10;
constexpr size_t kMaxLastLine = 300;

// All that the new process needs, made before it exists.
struct Image {
  std::string program;
  std::vector<std::string> arg_text, env_text;
  std::vector<char*> argv, envp;
};

void PointTo(std::vector<std::string>& text, std::vector<char*>& pointers) {
  for (std::string& t : text) pointers.push_back(t.data());
  pointers.push_back(nullptr);
}

void MakeImage(const ChildOptions& options, Image& image) {
  image.program = options.program;
  image.arg_text = options.args;
  image.arg_text.insert(image.arg_text.begin(), options.program);
  image.env_text = options.env;
  for (char** e = environ; *e != nullptr; ++e) {
    const absl::string_view name = absl::string_view(*e).substr(0, strcspn(*e, "=") + 1);
    const bool replaced = std::any_of(options.env.begin(), options.env.end(),
                                      [&](const auto& own) { return absl::StartsWith(own, name); });
    if (!replaced) image.env_text.emplace_back(*e);
  }
  PointTo(image.arg_text, image.argv);
  PointTo(image.env_text, image.envp);
}

// In the new process, on borrowed memory: system calls only.
[[noreturn]] void Become(const Image& image, int channel, int err, int failed, int nice_add,
                         pid_t parent) {
  struct sigaction by_default = {};
  by_default.sa_handler = SIG_DFL;
  for (int s = 1; s < NSIG; ++s) sigaction(s, &by_default, nullptr);
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  bool ok = getppid() == parent;  // else the parent died before that line
  ok = ok && dup2(channel, 0) == 0 && dup2(channel, 1) == 1 && dup2(err, 2) == 2;
  // Libraries may have opened files without O_CLOEXEC; a Rank must not hold the Worker's lock or
  // connections.
  syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
  [[maybe_unused]] const int niced = nice(nice_add);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  errno = ESRCH;
  if (ok) execve(image.program.c_str(), image.argv.data(), image.envp.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t told = write(failed, &error, sizeof(error));
  _exit(127);
}

// No fork: gRPC's threads do not survive one; vfork also costs the same whatever
// this process's size. -1: not started, with errno in *error.
pid_t SpawnProcess(const Image& image, int channel, int err, int nice_add, int* error) {
  int failed[2];
  if (pipe2(failed, O_CLOEXEC) != 0) {
    *error = errno;
    return -1;
  }
  sigset_t all, before;
  sigfillset(&all);
  // A handler must not run in the child, on this thread's stack.
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t parent = getpid();
  pid_t pid = vfork();
  if (pid == 0) Become(image, channel, err, failed[1], nice_add, parent);
  if (pid < 0) *error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  close(failed[1]);
  if (pid > 0 && read(failed[0], error, sizeof(*error)) > 0) {
    waitpid(pid, nullptr, 0);
    pid = -1;
  }
  close(failed[0]);
  return pid;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Child>> Child::Start(const ChildOptions& options, int* error) {
  int channel[2] = {-1, -1}, err[2] = {-1, -1};
  const auto close_all = [&] {
    for (const int fd : {channel[0], channel[1], err[0], err[1]}) {
      if (fd >= 0) close(fd);
    }
  };
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) != 0 ||
      pipe2(err, O_CLOEXEC) != 0) {
    *error = errno;
    close_all();
    return ErrnoStatus(*error, absl::StrCat("start ", options.program));
  }
  fcntl(err[0], F_SETFL, O_NONBLOCK);
  Image image;
  MakeImage(options, image);
  const pid_t pid = SpawnProcess(image, channel[1], err[1], options.nice, error);
  const int exit_fd = pid > 0 ? static_cast<int>(syscall(SYS_pidfd_open, pid, 0)) : -1;
  if (pid > 0 && exit_fd < 0) {
    *error = errno;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  if (exit_fd < 0) {
    close_all();
    return ErrnoStatus(*error, absl::StrCat("start ", options.program));
  }
  fcntl(exit_fd, F_SETFD, FD_CLOEXEC);
  close(channel[1]);
  close(err[1]);
  return std::unique_ptr<Child>(new Child(pid, exit_fd, channel[0], err[0]));
}

Child::Child(pid_t pid, int exit_fd, int channel_fd, int stderr_fd)
    : pid_(pid), exit_fd_(exit_fd), channel_(channel_fd, channel_fd), stderr_fd_(stderr_fd) {}

Child::~Child() {
  if (!reaped_) {
    Kill();
    waitpid(pid_, nullptr, 0);
  }
  close(exit_fd_);
  if (stderr_fd_ >= 0) close(stderr_fd_);
  WriteTail();
  if (log_fd_ >= 0) close(log_fd_);
}

void Child::Kill() {
  // Once reaped, the number may be another's.
  if (reaped_) return;
  // The group does not exist before the process has made it.
  if (kill(-pid_, SIGKILL) != 0) kill(pid_, SIGKILL);
}

std::optional<ExitStatus> Child::Reap() {
  if (reaped_) return std::nullopt;
  siginfo_t info = {};
  // Its group may have others in it, which end first: the pid keeps the group's
  // number taken until the wait below.
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return std::nullopt;
  }
  kill(-pid_, SIGKILL);
  DrainStderr();
  int status = 0;
  waitpid(pid_, &status, 0);
  reaped_ = true;
  if (!line_.empty()) Take("\n");
  if (WIFSIGNALED(status)) return ExitStatus{ExitStatus::kSignalled, WTERMSIG(status), last_line_};
  return ExitStatus{ExitStatus::kExited, WEXITSTATUS(status), last_line_};
}

void Child::LogTo(const std::string& path) {
  DrainStderr();
  if (!line_.empty()) Take("\n");
  WriteTail();
  if (log_fd_ >= 0) close(log_fd_);
  log_fd_ = -1;
  log_bytes_ = 0;
  line_.clear();
  last_line_.clear();
  level_ = LogLevel::kInfo;
  if (path.empty()) return;
  const absl::Status made = MakeDirs(path.substr(0, path.rfind('/')));
  log_fd_ = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (log_fd_ < 0) {
    TRAIND_LOG(WARNING) << "cannot open " << path << ": "
                        << (made.ok() ? strerror(errno) : made.ToString());
  }
}

void Child::WriteTail() {
  const std::string tail = std::exchange(tail_, {});
  const int64_t left_out = std::exchange(left_out_, 0);
  if (log_fd_ < 0 || left_out == 0) return;
  std::string text = tail;
  if (tail.size() > kTailBytes) text.erase(0, tail.size() - kTailBytes);
  if (left_out > static_cast<int64_t>(text.size())) {
    text.erase(0, text.find('\n') + 1);  // a part of a line
    text = absl::StrCat("(", left_out - static_cast<int64_t>(text.size()),
                        " bytes are missing here)\n", text);
  }
  [[maybe_unused]] const ssize_t written = write(log_fd_, text.data(), text.size());
}

void Child::WriteLog(LogLevel level, absl::string_view line) {
  if (!line_.empty()) Take("\n");
  level_ = level;
  Take(absl::StrCat(line, "\n"));
}

std::string Child::WithHeads(absl::string_view bytes) {
  std::string lines;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const bool whole = end != absl::string_view::npos;
    const absl::string_view part = whole ? bytes.substr(0, end + 1) : bytes;
    bytes.remove_prefix(part.size());
    if (headed_) {
      lines.append(part.data(), part.size());
    } else {
      start_.append(part.data(), part.size());
      if (!whole && start_.size() < kLogHeadBytes) break;
      if (HasLogHead(start_)) {
        level_ = LevelOfLogHead(start_);
      } else if (start_ != "\n") {
        lines += LogHead(SystemClock().WallNow(), level_);
      }
      lines += std::exchange(start_, {});
    }
    headed_ = !whole;
  }
  return lines;
}

void Child::Take(absl::string_view bytes) {
  const std::string lines = log_fd_ >= 0 ? WithHeads(bytes) : "";
  absl::string_view kept = lines;
  std::string full;
  if (log_fd_ >= 0 && log_bytes_ < kMaxLogBytes) {
    if (log_bytes_ + static_cast<int64_t>(lines.size()) >= kMaxLogBytes) {
      full = absl::StrCat("\n", LogHead(SystemClock().WallNow(), LogLevel::kInfo),
                          "This log is full; what comes now is left out, but for its end.\n");
      kept = full;
      log_bytes_ = kMaxLogBytes;
    }
    log_bytes_ += static_cast<int64_t>(kept.size());
    // A full disk must not hurt the run.
    [[maybe_unused]] const ssize_t written = write(log_fd_, kept.data(), kept.size());
  }
  if (log_fd_ >= 0 && log_bytes_ >= kMaxLogBytes) {
    left_out_ += static_cast<int64_t>(lines.size());
    tail_ += lines;
    if (tail_.size() > 2 * kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
  }
  for (const char c : bytes) {
    if (c != '\n') {
      if (line_.size() < kMaxLastLine) line_ += c;
      continue;
    }
    if (line_.empty()) continue;
    if (log_fd_ < 0) TRAIND_LOG(INFO) << "process " << pid_ << ": " << line_;
    last_line_ = std::exchange(line_, {});
  }
}

void Child::DrainStderr() {
  // At most so much a turn: a process that writes without end must not hold the
  // event loop.
  for (int i = 0; i < 16 && stderr_fd_ >= 0; ++i) {
    char buffer[16 << 10];
    const ssize_t got = read(stderr_fd_, buffer, sizeof(buffer));
    if (got > 0) {
      Take(absl::string_view(buffer, static_cast<size_t>(got)));
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      close(stderr_fd_);
      stderr_fd_ = -1;
    } else {
      return;
    }
  }
}

}  // namespace traind::worker
