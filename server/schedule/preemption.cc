#include "server/schedule/preemption.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "server/schedule/soonest.h"

namespace traind {
namespace {

using SlotRef = Soonest::SlotRef;

// The Workers as they will be when those in front have started, and who has their slots.
class Ahead {
 public:
  Ahead(const SlotBoard& board, absl::Span<const Holding> holdings) : holdings_(holdings) {
    std::map<std::string, size_t> places;
    copies_.reserve(board.workers().size());
    for (const auto& [id, worker] : board.workers()) {
      places[id] = copies_.size();
      copies_.push_back(worker);
      workers_.push_back(&copies_.back());
    }
    gone_.resize(holdings.size());
    for (size_t h = 0; h < holdings.size(); ++h) {
      if (!holdings[h].may_go) continue;
      for (const GangPart& part : holdings[h].parts) {
        const auto place = places.find(part.worker);
        if (place == places.end()) continue;
        const std::vector<WorkerSlots::Slot>& slots = copies_[place->second].slots;
        for (size_t i = 0; i < slots.size(); ++i) {
          if (std::find(part.slots.begin(), part.slots.end(), slots[i].index) == part.slots.end()) {
            continue;
          }
          holder_[{place->second, i}] = h;
        }
      }
    }
  }

  absl::Span<const WorkerSlots* const> workers() const { return workers_; }
  const WorkerSlots::Slot& At(const SlotRef& slot) const {
    return copies_[slot.first].slots[slot.second];
  }
  // The holding that could make that slot free for a Job of that priority.
  std::optional<size_t> Victim(const SlotRef& slot, int priority) const {
    const auto it = holder_.find(slot);
    if (it == holder_.end() || gone_[it->second]) return std::nullopt;
    if (holdings_[it->second].priority >= priority) return std::nullopt;
    return it->second;
  }
  void Take(const SlotRef& slot, absl::Time until) {
    WorkerSlots::Slot& taken = copies_[slot.first].slots[slot.second];
    taken.free = false;
    taken.free_at = until;
    holder_.erase(slot);
  }
  // All slots of that holding are free, at the latest at that time.
  void Release(size_t holding, absl::Time at) {
    gone_[holding] = true;
    for (const auto& [slot, holder] : holder_) {
      if (holder != holding) continue;
      WorkerSlots::Slot& released = copies_[slot.first].slots[slot.second];
      released.free_at = std::min(released.free_at, at);
    }
  }

 private:
  const absl::Span<const Holding> holdings_;
  std::vector<WorkerSlots> copies_;
  std::vector<const WorkerSlots*> workers_;
  std::map<SlotRef, size_t> holder_;
  std::vector<bool> gone_;
};

// Slots that could work together: those that are free soon, and the folds that have others.
struct Room {
  std::vector<SlotRef> free;
  std::map<size_t, std::vector<SlotRef>> held;  // by holding

  std::vector<size_t> victims;  // that go
  std::tuple<Harm, int, double, size_t> cost;
};

auto HarmOf(const Holding& holding) {
  return std::make_tuple(holding.harm, holding.priority, holding.lost_s, holding.attempt);
}

// Chooses the folds that go, the least harmful ones first, and none without need; false: there are
// not enough.
bool ChooseVictims(Room& room, size_t slots, absl::Span<const Holding> holdings) {
  std::vector<size_t> order;
  for (const auto& [holding, held] : room.held) order.push_back(holding);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return HarmOf(holdings[a]) < HarmOf(holdings[b]); });
  size_t have = room.free.size();
  for (const size_t holding : order) {
    if (have >= slots) break;
    room.victims.push_back(holding);
    have += room.held[holding].size();
  }
  if (have < slots || room.victims.empty()) return false;
  // A large one that came last may suffice without small ones before it.
  for (size_t i = room.victims.size(); i-- > 0;) {
    const size_t size = room.held[room.victims[i]].size();
    if (have - size < slots) continue;
    have -= size;
    room.victims.erase(room.victims.begin() + static_cast<std::ptrdiff_t>(i));
  }
  room.cost = {Harm::kExtraModel, std::numeric_limits<int>::min(), 0, have};
  for (const size_t holding : room.victims) {
    auto& [harm, priority, lost_s, all] = room.cost;
    harm = std::max(harm, holdings[holding].harm);
    priority = std::max(priority, holdings[holding].priority);
    lost_s += holdings[holding].lost_s;
  }
  return true;
}

// The cheapest room for one fold; empty: no folds that may go have so many slots.
std::optional<Room> FindRoom(const Candidate& candidate, absl::Time by, bool on_one,
                             const Ahead& ahead, absl::Span<const Holding> holdings) {
  std::map<std::pair<std::string, std::string>, Room> rooms;  // by Worker or network, and device
  for (size_t w = 0; w < ahead.workers().size(); ++w) {
    const WorkerSlots& worker = *ahead.workers()[w];
    if (!Suits(candidate, worker) || (!on_one && worker.network.empty())) continue;
    for (size_t i = 0; i < worker.slots.size(); ++i) {
      const WorkerSlots::Slot& slot = worker.slots[i];
      if (!SuitsSlot(candidate.shape, slot)) continue;
      Room& room = rooms[{on_one ? worker.worker : worker.network, slot.device}];
      if (slot.free || slot.free_at <= by) {
        room.free.push_back({w, i});
      } else if (const auto victim = ahead.Victim({w, i}, candidate.urgency.priority)) {
        room.held[*victim].push_back({w, i});
      }
    }
  }
  std::optional<Room> best;
  for (auto& [place, room] : rooms) {
    if (!ChooseVictims(room, static_cast<size_t>(candidate.shape.slots), holdings)) continue;
    if (!best || room.cost < best->cost) best = std::move(room);
  }
  return best;
}

}  // namespace

std::vector<Preemption> ChoosePreemptions(absl::Span<const Claim> line,
                                          absl::Span<const Holding> holdings, absl::Time now,
                                          absl::Duration soon, const SlotBoard& board) {
  Ahead ahead(board, holdings);
  std::vector<Preemption> chosen;
  for (size_t c = 0; c < line.size(); ++c) {
    const Candidate& candidate = line[c].candidate;
    const bool on_one = FitsOnOne(candidate, board);
    if (!on_one && !candidate.may_span) continue;
    const absl::Time by = std::max(now, std::min(candidate.urgency.latest_start, now + soon));
    const Soonest soonest = FindSoonest(candidate, now, on_one, ahead.workers());
    std::vector<SlotRef> slots = soonest.slots;
    absl::Time start = soonest.start;
    if (soonest.start > by && line[c].due) {
      if (const auto room = FindRoom(candidate, by, on_one, ahead, holdings)) {
        Preemption& preemption = chosen.emplace_back();
        preemption.claim = c;
        slots = room->free;
        for (const size_t victim : room->victims) {
          preemption.attempts.push_back(holdings[victim].attempt);
          const std::vector<SlotRef>& held = room->held.at(victim);
          slots.insert(slots.end(), held.begin(), held.end());
          ahead.Release(victim, by);
        }
        start = by;
        // Those that are free now would start something else meanwhile, so they come first.
        slots.resize(static_cast<size_t>(candidate.shape.slots));
      }
    }
    for (const SlotRef& slot : slots) ahead.Take(slot, start + candidate.takes);
  }
  return chosen;
}

}  // namespace traind
