// Decides which waiting folds go onto which free slots. Pure: the control core keeps the queue (an
// index in the order below), offers its head, and starts what is placed.
//
// Order: Jobs with fewer running gangs go first, so that each gets one before any gets a second;
// then the earlier deadline (to the second), then the higher priority, then the earlier acceptance.
// A gang is Spec::slots slots of one device kind. It has them on one Worker if a Worker with so
// many is there, and waits until they are free; else on as few Workers of one network as possible.
// Within a Job, folds go in their order. Jobs that only have extra seeds left to train go behind
// all others.
//
// Threads: safe; nothing is kept between calls.
#pragma once

#include <absl/time/time.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "server/domain/gang_part.h"

namespace traind {

// Sorts waiting Jobs: the smaller one goes first.
struct Urgency {
  int gangs = 0;                  // running now
  bool extra_seeds_only = false;  // only extra seeds wait
  absl::Time deadline = absl::InfiniteFuture();
  int priority = 0;
  absl::Time accepted_at;
  uint64_t sequence = 0;  // of acceptance; makes the order total

  // Deadlines within the same second count as equal.
  auto Key() const {
    return std::make_tuple(
        extra_seeds_only, gangs,
        deadline == absl::InfiniteFuture() ? INT64_MAX : absl::ToUnixSeconds(deadline), -priority,
        accepted_at, sequence);
  }
  friend bool operator<(const Urgency& a, const Urgency& b) { return a.Key() < b.Key(); }
};

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
  };
  std::vector<Slot> slots;
};

struct Candidate {
  Urgency urgency;
  GangShape shape;
  std::vector<int> folds;            // folds that may start now, in order; the caller's numbers
  std::string home;                  // the Worker that has its data; preferred
  bool needs_shared_folder = false;  // a Worker with a folder of its own does not suit
  bool may_span = false;             // a gang may have slots of several Workers
};

struct Placement {
  size_t candidate = 0;  // index into the candidates
  int fold = 0;
  std::vector<GangPart> parts;  // in the order of their ranks; one, unless the gang spans Workers
};

// Assigns slots of `workers` (and marks them as taken) to folds.
std::vector<Placement> PlaceFolds(absl::Span<const Candidate> candidates,
                                  std::vector<WorkerSlots>& workers);

// Counts the gangs of that shape that all Workers together could run at once, whether their slots
// are free or not.
int CountGangs(const GangShape& shape, bool may_span, absl::Span<const WorkerSlots> workers);

// The most slots that one gang can have, whether they are free or not. free_only: of free ones.
int LargestGang(const std::string& device, bool may_span, absl::Span<const WorkerSlots> workers,
                bool free_only = false);

}  // namespace traind
