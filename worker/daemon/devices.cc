#include "worker/daemon/devices.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "common/base/container.h"
#include "common/base/cores.h"
#include "common/base/log.h"

namespace traind::worker {
namespace {

// Kernels are built for 7.5 and newer.
constexpr int kMinMajor = 7;
constexpr int kMinMinor = 5;

std::string ProcessorName() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (!absl::StartsWith(line, "model name")) continue;
    const size_t colon = line.find(':');
    if (colon != std::string::npos) {
      return std::string(absl::StripAsciiWhitespace(absl::string_view(line).substr(colon + 1)));
    }
  }
  return "cpu";
}

std::vector<Slot> GpuSlots(const std::vector<Nvml::Device>& devices) {
  std::vector<Slot> slots;
  for (const Nvml::Device& gpu : devices) {
    if (std::pair(gpu.major, gpu.minor) < std::pair(kMinMajor, kMinMinor)) {
      TRAIND_LOG(WARNING) << gpu.name << " (" << gpu.uuid << ") is left out: compute capability "
                          << gpu.major << "." << gpu.minor << ", at least " << kMinMajor << "."
                          << kMinMinor << " is needed";
      continue;
    }
    slots.push_back({"cuda", gpu.name, gpu.uuid, static_cast<int64_t>(gpu.total_bytes)});
  }
  return slots;
}

std::vector<Slot> UsableGpus(std::vector<Slot> gpus, const GpuCheck& check) {
  if (gpus.empty()) return gpus;
  const std::vector<absl::Status> checked = check(gpus);
  std::vector<Slot> usable;
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (checked[i].ok()) {
      usable.push_back(std::move(gpus[i]));
    } else {
      TRAIND_LOG(WARNING) << gpus[i].name << " (" << gpus[i].uuid
                          << ") is left out, as a Rank cannot use it: " << checked[i].message();
    }
  }
  return usable;
}

}  // namespace

std::vector<Nvml::Device> VisibleDevices(const std::vector<Nvml::Device>& devices,
                                         absl::string_view visible) {
  std::vector<Nvml::Device> chosen;
  for (const absl::string_view raw : absl::StrSplit(visible, ',')) {
    const absl::string_view word = absl::StripAsciiWhitespace(raw);
    auto found = devices.end();
    if (int index = 0; absl::SimpleAtoi(word, &index)) {
      if (index >= 0 && index < static_cast<int>(devices.size())) found = devices.begin() + index;
    } else if (!word.empty()) {
      found = std::find_if(devices.begin(), devices.end(), [&](const Nvml::Device& device) {
        return absl::StartsWith(device.uuid, word);
      });
    }
    if (found == devices.end()) break;
    chosen.push_back(*found);
  }
  return chosen;
}

absl::StatusOr<std::vector<Slot>> FindSlots(const DeviceOptions& options,
                                            const std::vector<Nvml::Device>* gpus,
                                            const GpuCheck& check) {
  if (options.device != "auto" && options.device != "cpu" && options.device != "cuda") {
    return absl::InvalidArgumentError(
        absl::StrCat("device ", options.device, ": expected auto, cpu or cuda"));
  }
  std::vector<Slot> slots;
  if (options.device != "cpu" && gpus != nullptr) slots = UsableGpus(GpuSlots(*gpus), check);
  if (!slots.empty()) {
    if (options.slots > 0 && options.slots < static_cast<int>(slots.size())) {
      slots.resize(static_cast<size_t>(options.slots));
    }
    return slots;
  }
  if (options.device == "cuda") {
    return absl::NotFoundError(gpus == nullptr ? "device cuda: there is no NVIDIA driver here"
                                               : "device cuda: there is no usable GPU here");
  }
  if (gpus != nullptr && !gpus->empty() && options.device == "auto") {
    TRAIND_LOG(WARNING) << "no GPU of this machine can be used, so its cores are the slots";
  }
  const int cores = UsableCores();
  const int count = options.slots > 0 ? options.slots : cores;
  if (absl::Status checked = CheckSlots(count, cores); !checked.ok()) return checked;
  if (count > cores) {
    TRAIND_LOG(WARNING) << count << " slots share " << cores
                        << " cores: a fold in each of them is slower than on a core of its own";
  }
  const Slot cpu{"cpu", ProcessorName(), "", UsableMemory()};
  return std::vector<Slot>(static_cast<size_t>(count), cpu);
}

}  // namespace traind::worker
