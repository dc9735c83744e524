// Decides which waiting folds go onto which free slots. Pure: the control core keeps the queue (an
// index in the order below), offers its head, and starts what is placed.
//
// Order: a higher priority is a class of its own and goes first. Within a class:
// - Jobs with a deadline: those with fewer running gangs first, so that each gets one before any
//   gets a second; then the one that has to start earliest (the least laxity, to the second).
// - Jobs without: after the first two gangs of those with one. The owner with the least share of
//   the machines first, then the Job with fewer running gangs.
// Then the earlier acceptance. Within a Job, folds go in their order. Jobs that only have extra
// seeds left to train, or folds that have had their turn, go behind all others, of whatever class.
//
// A gang is Spec::slots slots of one device kind. It has them on one Worker if a Worker with so
// many is there, and waits until they are free; else on as few Workers of one network as possible,
// all of one rack (their label) where that suffices.
// The first gang that waits has a reservation: the slots that will be free soonest are kept for it.
// A fold that ends before they are all free may use them meanwhile (EASY backfill).
// Where an owner may use only so many slots at a time, its further folds wait, and their slots go
// to the next in line. The first gang of an owner that waits keeps its part of that limit.
//
// Threads: safe, with a board for each; nothing else is kept between calls.
#pragma once

#include <absl/time/time.h>
#include <absl/types/span.h>

#include <limits>
#include <vector>

#include "server/schedule/candidate.h"
#include "server/schedule/slot_board.h"
#include "server/schedule/slots.h"

namespace traind {

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
