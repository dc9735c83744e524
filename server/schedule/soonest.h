// Which slots a gang could have soonest, and when.
// Threads: safe, pure.
#pragma once

#include <absl/time/time.h>
#include <absl/types/span.h>

#include <utility>
#include <vector>

#include "server/schedule/candidate.h"
#include "server/schedule/slot_board.h"
#include "server/schedule/slots.h"

namespace traind {

// The slots that a gang could have soonest, of one Worker or one pool of several.
struct Soonest {
  using SlotRef = std::pair<size_t, size_t>;  // a Worker, and one of its slots

  absl::Time start = absl::InfiniteFuture();
  int free = -1;  // of them, now
  std::vector<SlotRef> slots;
};

// on_one: all of them on one Worker (FitsOnOne). A slot that is not free is so at its free_at.
Soonest FindSoonest(const Candidate& candidate, absl::Time now, bool on_one,
                    absl::Span<const WorkerSlots* const> workers);

// Whether some Worker has slots enough, if they were free: then the gang waits for that Worker.
bool FitsOnOne(const Candidate& candidate, const SlotBoard& board);

}  // namespace traind
