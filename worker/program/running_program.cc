#include "worker/program/running_program.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <utility>

#include "common/base/durable_file.h"
#include "worker/program/process_tree.h"

extern char** environ;

namespace traind {
namespace {

// Descriptors that the keeper gets: its orders above those that the program knows.
constexpr int kOrdersDescriptor = 4;
constexpr absl::Duration kDrain = absl::Milliseconds(10);
// What the pipes hold at the end of the program is read to its end, but for what a process that
// escaped goes on to write.
constexpr absl::Duration kLastDrain = absl::Seconds(1);

void CloseAll(std::initializer_list<int> descriptors) {
  for (const int descriptor : descriptors) {
    if (descriptor >= 0) close(descriptor);
  }
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> MergedEnvironment(const std::vector<std::string>& over) {
  std::map<std::string, std::string> merged;
  const auto add = [&merged](const std::string& variable) {
    merged[variable.substr(0, variable.find('='))] = variable;
  };
  for (char** variable = environ; *variable != nullptr; ++variable) add(*variable);
  for (const std::string& variable : over) add(variable);
  std::vector<std::string> all;
  for (auto& [name, variable] : merged) all.push_back(std::move(variable));
  return all;
}

// Moves a descriptor out of the way of the fixed ones; -1: it cannot.
int High(int descriptor) {
  const int high = fcntl(descriptor, F_DUPFD_CLOEXEC, kOrdersDescriptor + 1);
  close(descriptor);
  return high;
}

}  // namespace

void LineCutter::Add(absl::string_view bytes, const std::function<void(absl::string_view)>& line) {
  while (!bytes.empty()) {
    // A bar of progress overwrites its line by \r.
    const size_t end = bytes.find_first_of("\r\n");
    const absl::string_view part = bytes.substr(0, end);
    open_.append(part.data(), part.size());
    const bool whole = end != absl::string_view::npos;
    if (whole || open_.size() >= kMost) {
      if (!open_.empty()) line(open_);
      open_.clear();
    }
    bytes.remove_prefix(whole ? end + 1 : bytes.size());
  }
}

void LineCutter::Finish(const std::function<void(absl::string_view)>& line) {
  if (!open_.empty()) line(open_);
  open_.clear();
}

absl::StatusOr<std::unique_ptr<RunningProgram>> RunningProgram::Start(const UserProgramStart& start,
                                                                      Readers readers,
                                                                      const Clock& clock) {
  // Processes whose keeper was killed come to this one, which ends them.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int orders[2], output[2], report[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, orders) != 0) {
    return ErrnoStatus(errno, "socketpair");
  }
  if (pipe2(output, O_CLOEXEC) != 0 || pipe2(report, O_CLOEXEC) != 0) {
    return ErrnoStatus(errno, "pipe");
  }
  std::vector<std::string> arguments = {"trainprog", kKeepFlag, absl::StrCat(kOrdersDescriptor),
                                        start.offline ? kOffline : kOnline,
                                        absl::StrCat(start.writable.size())};
  arguments.insert(arguments.end(), start.writable.begin(), start.writable.end());
  arguments.insert(arguments.end(), start.command.begin(), start.command.end());
  std::vector<std::string> environment = MergedEnvironment(start.environment);
  const std::vector<char*> argv = Pointers(arguments), envp = Pointers(environment);
  const int keeper_orders = High(orders[1]), keeper_output = High(output[1]),
            keeper_report = High(report[1]);
  const int nothing = High(open("/dev/null", O_RDONLY | O_CLOEXEC));
  // vfork's rules hold between fork and execve: other threads may hold any lock.
  const pid_t keeper = fork();
  if (keeper == 0) {
    if (start.largest_file > 0) {
      const auto most = static_cast<rlim_t>(start.largest_file);
      const rlimit limit = {most, most};
      setrlimit(RLIMIT_FSIZE, &limit);
    }
    const bool ready = chdir(start.folder.c_str()) == 0 && dup2(nothing, 0) == 0 &&
                       dup2(keeper_output, 1) == 1 && dup2(keeper_output, 2) == 2 &&
                       dup2(keeper_report, kReportDescriptor) == kReportDescriptor &&
                       dup2(keeper_orders, kOrdersDescriptor) == kOrdersDescriptor;
    if (ready) execve(start.keeper.c_str(), argv.data(), envp.data());
    _exit(126);
  }
  const int error = errno;
  CloseAll({keeper_orders, keeper_output, keeper_report, nothing});
  if (keeper < 0) {
    CloseAll({orders[0], output[0], report[0]});
    return ErrnoStatus(error, "the program cannot be started: fork");
  }
  for (const int descriptor : {orders[0], output[0], report[0]}) {
    fcntl(descriptor, F_SETFL, O_NONBLOCK);
  }
  return std::unique_ptr<RunningProgram>(
      new RunningProgram(keeper, orders[0], output[0], report[0], std::move(readers), clock));
}

RunningProgram::RunningProgram(pid_t keeper, int orders, int output, int report, Readers readers,
                               const Clock& clock)
    : keeper_(keeper),
      orders_(orders),
      output_(output),
      report_(report),
      readers_(std::move(readers)),
      clock_(clock) {}

RunningProgram::~RunningProgram() {
  CloseAll({orders_, output_, report_});
  if (!end_.has_value()) {
    kill(keeper_, SIGKILL);
    waitpid(keeper_, nullptr, 0);
    KillDescendants();
  }
}

void RunningProgram::Order(KeeperOrder order) {
  const char byte = static_cast<char>(order);
  if (orders_ >= 0) send(orders_, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Hands over what is there. Not for longer than `until`, so that a program that writes without end
// does not keep its reader from all else.
void RunningProgram::Drain(int& descriptor, LineCutter& lines,
                           const std::function<void(absl::string_view)>& reader,
                           absl::Duration until) {
  char bytes[1 << 14];
  while (descriptor >= 0) {
    const ssize_t size = read(descriptor, bytes, sizeof bytes);
    if (size > 0) {
      lines.Add(absl::string_view(bytes, static_cast<size_t>(size)), reader);
      if (clock_.MonotonicNow() >= until) return;
    } else if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
      return;
    } else {
      lines.Finish(reader);
      close(std::exchange(descriptor, -1));
    }
  }
}

void RunningProgram::TakeEnd() {
  KeeperReport report;
  const ssize_t size = read(orders_, &report, sizeof report);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  close(std::exchange(orders_, -1));
  waitpid(keeper_, nullptr, 0);
  if (size != sizeof report) {
    report = KeeperReport();
    report.wait_status = SIGKILL;
    report.left_behind = KillDescendants();
  }
  // What was written before the end; a process that escaped does not hold this up.
  const absl::Duration until = clock_.MonotonicNow() + kLastDrain;
  Drain(output_, output_lines_, readers_.output, until);
  Drain(report_, report_lines_, readers_.report, until);
  output_lines_.Finish(readers_.output);
  report_lines_.Finish(readers_.report);
  end_ = report;
}

void RunningProgram::Poll(absl::Duration most) {
  if (end_.has_value()) return;
  pollfd waits[] = {{orders_, POLLIN, 0}, {output_, POLLIN, 0}, {report_, POLLIN, 0}};
  poll(waits, 3, static_cast<int>(absl::ToInt64Milliseconds(std::max(most, absl::ZeroDuration()))));
  const absl::Duration until = clock_.MonotonicNow() + kDrain;
  if (waits[1].revents != 0) Drain(output_, output_lines_, readers_.output, until);
  if (waits[2].revents != 0) Drain(report_, report_lines_, readers_.report, until);
  if (waits[0].revents != 0) TakeEnd();
}

}  // namespace traind
