// Slots of Workers as the scheduler sees them, and the gangs that ask for them.
#pragma once

#include <absl/time/time.h>

#include <string>
#include <tuple>
#include <vector>

#include "server/domain/gang_part.h"

namespace traind {

// The slots that a gang needs.
struct GangShape {
  int slots = 1;
  std::string device;  // empty: any kind, but the same for all slots
  friend bool operator<(const GangShape& a, const GangShape& b) {
    return std::tie(a.slots, a.device) < std::tie(b.slots, b.device);
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
  };
  std::vector<Slot> slots;
};

}  // namespace traind
