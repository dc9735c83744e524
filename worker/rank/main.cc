// trainrank: trains folds for the Worker that started it, or for a shell. Speaks
// worker/rank_protocol/messages.h over standard input and output; logs to standard
// error. CUDA_VISIBLE_DEVICES, unless empty or unset, gives it a GPU.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/base/status_macros.h"
#include "worker/device/cuda_api.h"
#include "worker/device/guard.h"
#include "worker/device/process_memory.h"
#include "worker/learner/learner.h"
#include "worker/rank/network_engine.h"
#include "worker/rank/try_script.h"
#include "worker/rank/try_weights.h"
#include "worker/task/task_process.h"

namespace traind {
namespace {

// A GPU is wanted where the Worker left one visible.
bool WantsGpu() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible != nullptr && *visible != '\0';
}

// Loads and warms up what every task needs; returns the device's name.
absl::StatusOr<std::string> WarmUp() {
  std::string device = "cpu";
  const CudaApi* cuda = nullptr;
  SetTorchThreads(1);
  if (WantsGpu()) {
    ASSIGN_OR_RETURN(cuda, LoadCuda());
    device = cuda->DeviceName();
  }
  RETURN_IF_ERROR(WarmUpTorch(cuda));
  return device;
}

// trainrank check-device: loads what a task would need on this device; says why it cannot on
// standard error, in a line.
int CheckDevice() {
  absl::StatusOr<std::string> device = absl::UnknownError("");
  const absl::Status checked = Guarded([&] {
    device = WarmUp();
    return device.status();
  });
  if (checked.ok()) return 0;
  const std::string text(checked.message());
  std::fprintf(stderr, "%s\n", text.substr(0, text.find('\n')).c_str());
  return 1;
}

int Main() {
  KeepFreedMemory(true);
  NetworkEngine engine;
  return RunTaskProcess(engine, WarmUp);
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) {
  const std::string way = argc > 1 ? argv[1] : "";
  if (way == "try-script") return traind::TryScriptMain(argc, argv);
  if (way == "try-weights") return traind::TryWeightsMain(argc, argv);
  if (way == "check-device") return traind::CheckDevice();
  if (way == "list-parameters") return traind::ListParametersMain(argc, argv);
  return traind::Main();
}
