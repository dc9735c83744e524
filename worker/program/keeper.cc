#include "worker/program/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "worker/program/confine.h"
#include "worker/program/process_tree.h"

namespace traind {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

// What the keeper was started with.
struct Orders {
  int descriptor = -1;
  bool offline = false;
  std::vector<std::string> folders;  // that the program may write to; empty: any
  char** command = nullptr;
};

std::optional<Orders> ReadOrders(int count, char** arguments) {
  constexpr int kFixed = 3;
  if (count <= kFixed) return std::nullopt;
  Orders orders;
  orders.descriptor = std::atoi(arguments[0]);
  orders.offline = std::strcmp(arguments[1], kOffline) == 0;
  const int folders = std::atoi(arguments[2]);
  if (folders < 0 || count <= kFixed + folders) return std::nullopt;
  orders.folders.assign(arguments + kFixed, arguments + kFixed + folders);
  orders.command = arguments + kFixed + folders;
  return orders;
}

struct StartError {
  int32_t error = 0;
  StartStep step = StartStep::kExec;
};

// Where memory runs out the system ends this program, and not traind. A crash leaves no file of the
// memory's size among the results.
void Limit() {
  constexpr char kFirstToEnd[] = "900";
  const int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score >= 0) {
    const ssize_t ignored = write(score, kFirstToEnd, sizeof kFirstToEnd - 1);
    (void)ignored;
    close(score);
  }
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

// Returns where it failed to take from this process what the program is not to have.
StartError Confine(const Orders& orders) {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (orders.offline) {
    if (const int error = LeaveNetwork(); error != 0) return {error, StartStep::kOffline};
  }
  if (!orders.folders.empty()) {
    const int error = WriteOnlyTo(orders.folders);
    if (error != 0) return {error, StartStep::kOwnFolders};
  }
  return {};
}

// The new process: becomes the command. A failure goes through the pipe, which closes by itself
// where the command starts.
[[noreturn]] void Become(const Orders& orders, pid_t keeper, int error_pipe) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != keeper) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int signal = 1; signal < NSIG; ++signal) std::signal(signal, SIG_DFL);
  Limit();
  StartError error = Confine(orders);
  if (error.error == 0) {
    execvp(orders.command[0], orders.command);
    error.error = errno;
  }
  const ssize_t ignored = write(error_pipe, &error, sizeof error);
  (void)ignored;
  _exit(127);
}

// Returns the process; 0 with report.exec_error: it could not be started.
pid_t StartProgram(const Orders& orders, KeeperReport& report) {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return report.exec_error = errno, 0;
  const pid_t keeper = getpid();
  const pid_t program = fork();
  if (program == 0) Become(orders, keeper, pipe_ends[1]);
  if (program < 0) report.exec_error = errno;
  close(pipe_ends[1]);
  StartError error;
  if (program > 0 && read(pipe_ends[0], &error, sizeof error) == sizeof error) {
    report.exec_error = error.error;
    report.failed_step = error.step;
  }
  close(pipe_ends[0]);
  if (report.exec_error == 0) return program;
  if (program > 0) waitpid(program, nullptr, 0);
  return 0;
}

void Obey(KeeperOrder order) {
  for (const pid_t pid : Descendants(getpid())) {
    if (order == KeeperOrder::kSoftStop) {
      if (Catches(pid, SIGUSR1)) kill(pid, SIGUSR1);
    } else {
      kill(pid, order == KeeperOrder::kTerminate ? SIGTERM : SIGKILL);
    }
  }
}

// Reaps whoever has ended; the program's status, once it has.
std::optional<int> Reap(pid_t program) {
  std::optional<int> ended;
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (pid == program) ended = status;
  }
  return ended;
}

// Returns the program's status; none: trainprog is gone.
std::optional<int> Watch(pid_t program, int orders, int signals) {
  for (;;) {
    if (const std::optional<int> ended = Reap(program)) return ended;
    pollfd waits[] = {{orders, POLLIN, 0}, {signals, POLLIN, 0}};
    if (poll(waits, 2, -1) < 0 && errno != EINTR) return std::nullopt;
    if (waits[1].revents != 0) {
      signalfd_siginfo ignored;
      while (read(signals, &ignored, sizeof ignored) > 0) {
      }
    }
    if (waits[0].revents == 0) continue;
    char order = 0;
    if (read(orders, &order, 1) != 1) return std::nullopt;
    Obey(static_cast<KeeperOrder>(order));
  }
}

}  // namespace

int RunKeeper(int count, char** arguments) {
  const std::optional<Orders> orders = ReadOrders(count, arguments);
  if (!orders.has_value()) return 2;
  const int descriptor = orders->descriptor;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  setsid();  // whoever signals trainprog's group does not mean the keeper
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  sigset_t kept;
  sigemptyset(&kept);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGPIPE}) {
    sigaddset(&kept, signal);
  }
  sigprocmask(SIG_BLOCK, &kept, nullptr);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  const int signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  KeeperReport report;
  const pid_t program = StartProgram(*orders, report);
  std::optional<int> ended = 0;
  if (program > 0) ended = Watch(program, descriptor, signals);
  report.left_behind = KillDescendants();
  if (!ended.has_value()) return 1;
  report.wait_status = *ended;
  rusage used;
  if (getrusage(RUSAGE_CHILDREN, &used) == 0) {
    report.peak_bytes = int64_t{1024} * used.ru_maxrss;
    report.cpu_s = Seconds(used.ru_utime) + Seconds(used.ru_stime);
  }
  // Its own ends of the program's output would keep the reader waiting.
  close(kReportDescriptor);
  const ssize_t ignored = write(descriptor, &report, sizeof report);
  (void)ignored;
  return 0;
}

}  // namespace traind
