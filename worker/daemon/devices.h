// The slots that a Worker offers: its GPUs, or its cores where there is none.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "third_party/nvml/nvml.h"

namespace traind::worker {

// One Rank runs in it.
struct Slot {
  std::string device;  // "cpu" or "cuda"
  std::string name;    // the processor's or the GPU's
  std::string uuid;    // of a GPU
  int64_t memory_bytes = 0;
};

struct DeviceOptions {
  std::string device = "auto";  // auto, cpu, cuda
  int slots = 0;                // at most so many GPUs, or so many CPU slots; 0: all there are
};

// Tells of each GPU whether a Rank can use it.
using GpuCheck = std::function<std::vector<absl::Status>(const std::vector<Slot>& gpus)>;

// Where device is auto, usable GPUs win. `gpus` are those that the driver lists; null: there is no
// driver. Those that fail the check are left out, with a warning that names the cause.
// Errors: InvalidArgument = no such device word; NotFound = cuda was asked for and
// no usable GPU is there.
absl::StatusOr<std::vector<Slot>> FindSlots(const DeviceOptions& options,
                                            const std::vector<Nvml::Device>* gpus,
                                            const GpuCheck& check);

// The GPUs that CUDA_VISIBLE_DEVICES leaves: a list of indices (NVML's order) or
// beginnings of UUIDs; as CUDA does, all from the first unknown one on are left out.
std::vector<Nvml::Device> VisibleDevices(const std::vector<Nvml::Device>& devices,
                                         absl::string_view visible);

}  // namespace traind::worker
