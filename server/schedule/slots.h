// Slots of Workers as the scheduler sees them, and the gangs that ask for them.
#pragma once

#include <absl/time/time.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "server/domain/constraints.h"
#include "server/domain/gang_part.h"

namespace traind {

// The slots that a gang needs.
struct GangShape {
  int slots = 1;
  std::string device;  // empty: any kind, but the same for all slots
  Constraints constraints = {};
  friend bool operator<(const GangShape& a, const GangShape& b) {
    return std::tie(a.slots, a.device, a.constraints) < std::tie(b.slots, b.device, b.constraints);
  }
};

// What a slot is. Where it is a GPU, the others of its model are of the same kind.
struct DeviceKind {
  std::string device;        // cpu or cuda
  std::string gpu;           // its name in lower case
  int64_t memory_bytes = 0;  // of a GPU
  friend bool operator<(const DeviceKind& a, const DeviceKind& b) {
    return std::tie(a.device, a.gpu, a.memory_bytes) < std::tie(b.device, b.gpu, b.memory_bytes);
  }
};

struct WorkerSlots {
  std::string worker;
  bool own_folder = false;  // its state folder is not traind's
  // Workers of one network reach each other; empty: nobody reaches this one.
  std::string network;
  struct Slot {
    int index = 0;
    std::string device;
    bool free = true;
    absl::Time free_at = absl::InfiniteFuture();  // where it is not free: expected
    // Kept for a gang from then on; folds that end before may have it.
    absl::Time reserved_from = absl::InfiniteFuture();
    std::string gpu = {};      // its name in lower case
    int64_t memory_bytes = 0;  // of a GPU

    DeviceKind kind() const { return {device, gpu, memory_bytes}; }
  };
  std::vector<Slot> slots;
  std::set<std::string> labels = {};  // "rack=a"
};

// Whether such a slot is one that the gang asks for; DeviceKind or WorkerSlots::Slot.
template <class Slot>
bool SuitsSlot(const GangShape& shape, const Slot& slot) {
  if (!shape.device.empty() && slot.device != shape.device) return false;
  const Constraints& asked = shape.constraints;
  return !asked.of_gpu() || (NamesGpu(slot.gpu, asked.gpu) &&
                             HoldsNominally(slot.memory_bytes, asked.gpu_memory_bytes));
}

// Whether a Worker has all labels that are asked for.
inline bool HasLabels(const std::set<std::string>& labels, const Constraints& asked) {
  return asked.labels.empty() ||
         std::includes(labels.begin(), labels.end(), asked.labels.begin(), asked.labels.end());
}

}  // namespace traind
