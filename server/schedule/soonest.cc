#include "server/schedule/soonest.h"

#include <algorithm>
#include <map>
#include <string>

namespace traind {

bool FitsOnOne(const Candidate& candidate, const SlotBoard& board) {
  return board.capacity().CountGangs(candidate.shape, /*may_span=*/false) > 0;
}

Soonest FindSoonest(const Candidate& candidate, absl::Time now, bool on_one,
                    absl::Span<const WorkerSlots* const> workers) {
  if (!on_one && !candidate.may_span) return {};
  const auto size = static_cast<size_t>(candidate.shape.slots);
  using Pool = std::vector<std::pair<absl::Time, Soonest::SlotRef>>;
  Soonest best;
  const auto consider = [&](Pool& pool) {
    if (pool.size() < size) return;
    const auto end = pool.begin() + static_cast<std::ptrdiff_t>(size);
    std::partial_sort(pool.begin(), end, pool.end());
    Soonest found;
    found.start = pool[size - 1].first;
    found.free = 0;
    for (auto it = pool.begin(); it != end; ++it) {
      const auto& [worker, slot] = it->second;
      found.free += workers[worker]->slots[slot].free;
      found.slots.push_back(it->second);
    }
    if (found.start < best.start || (found.start == best.start && found.free > best.free)) {
      best = std::move(found);
    }
  };
  std::map<std::pair<std::string, std::string>, Pool> shared;  // by network and device
  for (size_t w = 0; w < workers.size(); ++w) {
    const WorkerSlots& worker = *workers[w];
    if (!Suits(candidate, worker) || (!on_one && worker.network.empty())) continue;
    std::map<std::string, Pool> own;  // by device
    for (size_t i = 0; i < worker.slots.size(); ++i) {
      const WorkerSlots::Slot& slot = worker.slots[i];
      if (!SuitsSlot(candidate.shape, slot)) continue;
      Pool& pool = on_one ? own[slot.device] : shared[{worker.network, slot.device}];
      pool.push_back({slot.free ? now : std::max(now, slot.free_at), {w, i}});
    }
    for (auto& [device, pool] : own) consider(pool);
  }
  for (auto& [place, pool] : shared) consider(pool);
  return best;
}

}  // namespace traind
