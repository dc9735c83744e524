// Decides which running folds make room for waiting ones of a higher class. Pure: the control core
// says who waits and what runs, and tells what is chosen to save a checkpoint and go.
//
// A Job whose first fold would otherwise wait for longer than `soon`, or past its latest start,
// gets the slots of folds of lower priorities: of one Worker (or of one network, for a gang that
// spans Workers), and no more than it needs. Those go first that do the least harm: extra models,
// then folds without a deadline, then folds of Jobs that have an answer of models, then others;
// among equals those of the lowest priority, then those that lose the fewest device-seconds.
//
// Threads: safe.
#pragma once

#include <absl/time/time.h>
#include <absl/types/span.h>

#include <cstdint>
#include <vector>

#include "server/schedule/candidate.h"
#include "server/schedule/slot_board.h"

namespace traind {

// What a Job loses when one of its folds goes, from little to much.
enum class Harm {
  kExtraModel,  // nothing depends on it
  kTime,        // it has no deadline
  kScore,       // other models answer at its deadline
  kModel,       // the floor may answer at its deadline
};

// A running fold.
struct Holding {
  int64_t attempt = 0;
  int priority = 0;
  std::vector<GangPart> parts;
  bool may_go = false;  // as far as its own Job goes
  Harm harm = Harm::kTime;
  double lost_s = 0;  // device-seconds since its last checkpoint
};

// A Job with a fold that waits.
struct Claim {
  Candidate candidate;
  bool due = false;  // it may stop others now
};

struct Preemption {
  size_t claim = 0;               // index into the line
  std::vector<int64_t> attempts;  // that go; at least one
};

// Goes through `line`, in the order in which they get slots; one fold of each counts. The slots
// that one could have soon are not those of the next. REQUIRES: `takes` and the slots' free_at are
// filled in as far as they are known.
std::vector<Preemption> ChoosePreemptions(absl::Span<const Claim> line,
                                          absl::Span<const Holding> holdings, absl::Time now,
                                          absl::Duration soon, const SlotBoard& board);

}  // namespace traind
