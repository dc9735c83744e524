// A Job whose folds wait for slots, as the scheduler sees it.
// Threads: plain values.
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "server/schedule/owner_limits.h"
#include "server/schedule/slots.h"

namespace traind {

// Sorts waiting Jobs: the smaller one goes first.
struct Urgency {
  int gangs = 0;                  // running now
  bool extra_seeds_only = false;  // only extra seeds wait, or folds that come back
  // The deadline less the time that its longest waiting fold takes, as far as that is known.
  absl::Time latest_start = absl::InfiniteFuture();
  int priority = 0;
  absl::Time accepted_at;
  uint64_t sequence = 0;  // of acceptance; makes the order total
  double share = 0;       // its owner's (OwnerShares); counts where there is no deadline

  bool has_deadline() const { return latest_start != absl::InfiniteFuture(); }
  // Starts within the same second count as equal.
  auto Key() const {
    return std::make_tuple(extra_seeds_only, -priority, has_deadline() ? gangs : 1,
                           has_deadline() ? absl::ToUnixSeconds(latest_start) : INT64_MAX,
                           has_deadline() ? 0.0 : share, gangs, accepted_at, sequence);
  }
  friend bool operator<(const Urgency& a, const Urgency& b) { return a.Key() < b.Key(); }
};

struct Candidate {
  Urgency urgency;
  std::string owner;
  int slots_left = OwnerLimits::kNoLimit;  // that further folds of the owner may take
  GangShape shape;
  absl::Duration takes = absl::InfiniteDuration();  // a fold, at most; as far as that is known
  std::vector<int> folds;  // folds that may start now, in order; the caller's numbers
  std::string home;        // the Worker that has its data; preferred
  bool may_span = false;   // a gang may have slots of several Workers
};

// Whether a Worker suits, whatever its slots are.
inline bool Suits(const Candidate& candidate, const WorkerSlots& worker) {
  return HasLabels(worker.labels, candidate.shape.constraints);
}

}  // namespace traind
