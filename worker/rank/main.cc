// trainrank: trains folds for the Worker that started it, or for a shell.
//   trainrank [--device cpu|cuda] [--parent-pid N]
// Speaks worker/rank_protocol/messages.h over standard input and output; logs to
// standard error. --parent-pid: ends if that process is gone already.
#include <absl/strings/numbers.h>
#include <absl/strings/string_view.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>

#include "common/clock.h"
#include "common/log.h"
#include "worker/device/cuda_api.h"
#include "worker/model/learner.h"
#include "worker/rank/rank.h"
#include "worker/rank/reporter.h"

namespace traind {
namespace {

struct Flags {
  std::string device = "cpu";
  int parent_pid = 0;
};

bool ParseFlags(int argc, char** argv, Flags& flags) {
  for (int i = 1; i < argc; i += 2) {
    const absl::string_view name = argv[i];
    if (i + 1 == argc) return false;
    const absl::string_view value = argv[i + 1];
    if (name == "--device" && (value == "cpu" || value == "cuda")) {
      flags.device = std::string(value);
    } else if (name != "--parent-pid" || !absl::SimpleAtoi(value, &flags.parent_pid)) {
      return false;
    }
  }
  return true;
}

// A Rank must not outlive its Worker: the kernel sees to it, from here on.
bool DieWithParent(int parent_pid) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return parent_pid == 0 || getppid() == parent_pid;
}

// The protocol's descriptors, away from 0 and 1: whatever a library prints goes
// to the log.
int KeepAway(int fd, int replacement) {
  const int kept = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  dup2(replacement, fd);
  return kept;
}

// Batches come and go at the same few sizes: keep freed memory instead of giving
// it back to the system, page by page, at every step.
void TuneAllocator() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

int Main(int argc, char** argv) {
  Flags flags;
  if (!ParseFlags(argc, argv, flags)) {
    std::fputs("usage: trainrank [--device cpu|cuda] [--parent-pid N]\n", stderr);
    return 2;
  }
  if (!DieWithParent(flags.parent_pid)) return 1;
  signal(SIGPIPE, SIG_IGN);
  TuneAllocator();
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  rank_protocol::LineChannel channel(KeepAway(STDIN_FILENO, null),
                                     KeepAway(STDOUT_FILENO, STDERR_FILENO));
  const Clock& clock = SystemClock();
  Reporter reporter(channel, clock);
  Rank rank(channel, reporter, clock);
  std::thread([&rank] { rank.ReadCommands(); }).detach();

  std::string device = "cpu";
  SetTorchThreads(1);
  if (flags.device == "cuda") {
    const auto cuda = LoadCuda();
    if (!cuda.ok()) {
      TRAIND_LOG(ERROR) << "no GPU: " << cuda.status().ToString();
      return 1;
    }
    device = (*cuda)->DeviceName();
  }
  const absl::Status warm = WarmUpTorch();
  if (!warm.ok()) {
    TRAIND_LOG(ERROR) << "warm-up: " << warm.ToString();
    return 1;
  }
  rank.Run(device);
  reporter.Drain(absl::Seconds(1));
  // Not through destructors: the reading thread still uses what they would destroy.
  std::fflush(nullptr);
  _exit(0);
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) { return traind::Main(argc, argv); }
