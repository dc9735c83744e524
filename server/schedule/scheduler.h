// Decides which waiting folds go onto which free slots. Pure: the control core keeps the queue (an
// index in the order below), offers its head, and starts what is placed.
//
// Order: a higher priority is a class of its own and goes first. Within a class:
// - Jobs with a deadline: those with fewer running gangs first, so that each gets one before any
// gets
//   a second; then the one that has to start earliest (the least laxity, to the second).
// - Jobs without: after the first two gangs of those with one. The owner with the least share of
// the
//   machines first, then the Job with fewer running gangs.
// Then the earlier acceptance. Within a Job, folds go in their order. Jobs that only have extra
// seeds left to train go behind all others.
//
// A gang is Spec::slots slots of one device kind. It has them on one Worker if a Worker with so
// many is there, and waits until they are free; else on as few Workers of one network as possible.
// The first gang that waits has a reservation: the slots that will be free soonest are kept for it.
// A fold that ends before they are all free may use them meanwhile (EASY backfill).
//
// Threads: safe, with a board for each; nothing else is kept between calls.
#pragma once

#include <absl/time/time.h>
#include <absl/types/span.h>

#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "server/schedule/owner_shares.h"
#include "server/schedule/slot_board.h"
#include "server/schedule/slots.h"

namespace traind {

// Sorts waiting Jobs: the smaller one goes first.
struct Urgency {
  int gangs = 0;                  // running now
  bool extra_seeds_only = false;  // only extra seeds wait
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
  GangShape shape;
  absl::Duration takes = absl::InfiniteDuration();  // a fold, at most; as far as that is known
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

// Assigns slots of the board to folds, at most so many, and marks them as taken, or as reserved.
// What an earlier call has reserved is released.
std::vector<Placement> PlaceFolds(absl::Span<const Candidate> candidates, absl::Time now,
                                  SlotBoard& board,
                                  size_t most = std::numeric_limits<size_t>::max());

// The reason why a fold waits.
struct Outlook {
  bool one_worker = false;  // some Worker has slots enough, if they were free
  int free = 0;             // that it could have now: the most on one Worker, or of one pool
  int kept = 0;             // of all free slots: reserved for a gang
  // When it will have its slots, at the latest; InfiniteFuture: never, or nobody knows.
  absl::Time start = absl::InfiniteFuture();
};

// Goes through `line`, the candidates in the order in which they get slots; one fold of each
// counts. REQUIRES: their `takes` and the slots' free_at are filled in as far as they are known.
std::vector<Outlook> LookAhead(absl::Span<const Candidate> line, absl::Time now,
                               const SlotBoard& board);

}  // namespace traind
