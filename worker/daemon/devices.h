// The slots that a Worker offers: its GPUs, or its cores where there is none.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <optional>
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

// Where device is auto, GPUs win. `nvml` may be null: no driver. `visible` is the
// value of CUDA_VISIBLE_DEVICES, if it is set: GPUs outside it are not ours.
// Errors: InvalidArgument = no such device word; NotFound = cuda was asked for and
// no usable GPU is there.
absl::StatusOr<std::vector<Slot>> FindSlots(const DeviceOptions& options, const Nvml* nvml,
                                            std::optional<std::string> visible);

// The GPUs that CUDA_VISIBLE_DEVICES leaves: a list of indices (NVML's order) or
// beginnings of UUIDs; as CUDA does, all from the first unknown one on are left out.
std::vector<Nvml::Device> VisibleDevices(const std::vector<Nvml::Device>& devices,
                                         absl::string_view visible);

// Cores that this process may run on.
int UsableCores();

}  // namespace traind::worker
