// Which waiting folds go onto which free slots. Pure: the control core keeps the
// queue (an index in the order below) and offers its head; what comes out it starts.
//
// Order: Jobs with fewer gangs running go first, so that each gets one before any
// gets a second; then the earlier deadline (to the second), then the higher
// priority, then the earlier acceptance. A gang is Spec::slots slots of one device
// on one Worker. Within a Job folds go in their order. Jobs that have only extra
// seeds left to train go behind all others.
//
// Threads: safe, nothing is kept.
#pragma once

#include <absl/time/time.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace traind {

// Sorts Jobs that wait: less = goes first.
struct Urgency {
  int gangs = 0;                  // running now
  bool extra_seeds_only = false;  // no first model of a fold waits
  absl::Time deadline = absl::InfiniteFuture();
  int priority = 0;
  absl::Time accepted_at;
  uint64_t sequence = 0;  // of acceptance; makes it total

  // Deadlines within the same second are equally far.
  auto Key() const {
    return std::make_tuple(
        extra_seeds_only, gangs,
        deadline == absl::InfiniteFuture() ? INT64_MAX : absl::ToUnixSeconds(deadline), -priority,
        accepted_at, sequence);
  }
  friend bool operator<(const Urgency& a, const Urgency& b) { return a.Key() < b.Key(); }
};

// What a gang needs.
struct GangShape {
  int slots = 1;
  std::string device;  // empty: any, but all of one kind
  friend bool operator<(const GangShape& a, const GangShape& b) {
    return std::tie(a.slots, a.device) < std::tie(b.slots, b.device);
  }
};

struct WorkerSlots {
  std::string worker;
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
  std::vector<int> folds;  // that may start now, in order: numbers of the caller's
  std::string home;        // the Worker that has its data; preferred
};

struct Placement {
  size_t candidate = 0;  // index into what was offered
  int fold = 0;
  std::string worker;
  std::vector<int> slots;
};

// Takes slots from `workers` (marks them) and says for which fold.
std::vector<Placement> PlaceFolds(absl::Span<const Candidate> candidates,
                                  std::vector<WorkerSlots>& workers);

// Gangs of that shape that all Workers together could run at once, free or not.
int CountGangs(const GangShape& shape, absl::Span<const WorkerSlots> workers);

}  // namespace traind
