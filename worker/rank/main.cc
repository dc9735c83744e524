// trainrank: trains folds for the Worker that started it, or for a shell. Speaks
// worker/rank_protocol/messages.h over standard input and output; logs to standard
// error. CUDA_VISIBLE_DEVICES, unless empty or unset, gives it a GPU.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/device/cuda_api.h"
#include "worker/device/process_memory.h"
#include "worker/learner/learner.h"
#include "worker/rank/rank.h"
#include "worker/rank/reporter.h"
#include "worker/rank/try_script.h"
#include "worker/rank/try_weights.h"

namespace traind {
namespace {

// A Rank must not outlive its Worker: the kernel sees to it, from here on.
bool DieWithParent() {
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return getppid() == parent;  // else it died before that line
}

// A GPU is wanted where the Worker left one visible.
bool WantsGpu() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible != nullptr && *visible != '\0';
}

// The protocol's descriptors, away from 0 and 1: whatever a library prints goes
// to the log.
int KeepAway(int fd, int replacement) {
  const int kept = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  dup2(replacement, fd);
  return kept;
}

int Main() {
  if (!DieWithParent()) return 1;
  signal(SIGPIPE, SIG_IGN);
  KeepFreedMemory(true);
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  rank_protocol::LineChannel channel(KeepAway(STDIN_FILENO, null),
                                     KeepAway(STDOUT_FILENO, STDERR_FILENO));
  const Clock& clock = SystemClock();
  Reporter reporter(channel, clock);
  Rank rank(channel, reporter, clock);
  std::thread([&rank] { rank.ReadCommands(); }).detach();

  std::string device = "cpu";
  const CudaApi* cuda = nullptr;
  SetTorchThreads(1);
  if (WantsGpu()) {
    const auto loaded = LoadCuda();
    if (!loaded.ok()) {
      TRAIND_LOG(ERROR) << "no GPU: " << loaded.status().ToString();
      return 1;
    }
    cuda = *loaded;
    device = cuda->DeviceName();
  }
  const absl::Status warm = WarmUpTorch(cuda);
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

int main(int argc, char** argv) {
  const std::string way = argc > 1 ? argv[1] : "";
  if (way == "try-script") return traind::TryScriptMain(argc, argv);
  if (way == "try-weights") return traind::TryWeightsMain(argc, argv);
  if (way == "list-parameters") return traind::ListParametersMain(argc, argv);
  return traind::Main();
}
