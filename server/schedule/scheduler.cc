#include "server/schedule/scheduler.h"

#include <absl/strings/match.h>
#include <absl/strings/string_view.h>

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include "server/schedule/owner_shares.h"
#include "server/schedule/soonest.h"

namespace traind {
namespace {

// Returns a Worker's free slots that suit, by device, without those that are reserved before
// `ends`.
std::map<std::string, std::vector<int>> FreeByDevice(const GangShape& shape,
                                                     const WorkerSlots& worker, absl::Time ends) {
  std::map<std::string, std::vector<int>> by_device;
  for (const WorkerSlots::Slot& slot : worker.slots) {
    if (!slot.free || !SuitsSlot(shape, slot)) continue;
    if (slot.reserved_from >= ends) by_device[slot.device].push_back(slot.index);
  }
  return by_device;
}

// Returns free slots of one device for a gang; empty: there is no room.
std::vector<int> FindGang(const GangShape& shape, const WorkerSlots& worker, absl::Time ends) {
  for (auto& [device, slots] : FreeByDevice(shape, worker, ends)) {
    if (static_cast<int>(slots.size()) < shape.slots) continue;
    slots.resize(static_cast<size_t>(shape.slots));
    return std::move(slots);
  }
  return {};
}

// The home Worker comes first, then the fullest one with room, which keeps large gaps for large
// gangs.
std::vector<GangPart> FindOnOne(const Candidate& candidate, absl::Time ends,
                                const SlotBoard& board) {
  const auto fits = [&](const WorkerSlots& worker) {
    return !FindGang(candidate.shape, worker, ends).empty();
  };
  const WorkerSlots* best = board.Find(candidate.home);
  if (best == nullptr || !Suits(candidate, *best) || !fits(*best)) {
    best = board.FindFullest(candidate.shape, fits);
  }
  if (best == nullptr) return {};
  return {{best->worker, FindGang(candidate.shape, *best, ends)}};
}

// The value of a Worker's label `rack`; empty: it has none.
std::string RackOf(const WorkerSlots& worker) {
  constexpr absl::string_view kRack = "rack=";
  const auto label = worker.labels.lower_bound(std::string(kRack));
  if (label == worker.labels.end() || !absl::StartsWith(*label, kRack)) return "";
  return label->substr(kRack.size());
}

// Slots that could work together, by their Workers.
using Pool = std::vector<GangPart>;

// Returns the pools from which a gang that spans Workers may take its slots: by network and device,
// and by rack where they are not to go beyond one.
std::map<std::vector<std::string>, Pool> Pools(const Candidate& candidate, const SlotBoard& board,
                                               absl::Time ends, bool by_rack) {
  std::map<std::vector<std::string>, Pool> pools;
  for (const auto& [id, worker] : board.workers()) {
    if (worker.network.empty() || !Suits(candidate, worker)) continue;
    const std::string rack = by_rack ? RackOf(worker) : "";
    if (by_rack && rack.empty()) continue;
    for (auto& [device, slots] : FreeByDevice(candidate.shape, worker, ends)) {
      pools[{worker.network, device, rack}].push_back({worker.worker, std::move(slots)});
    }
  }
  return pools;
}

// Takes the largest parts first, so that there are few; the last one is the smallest that suffices.
std::vector<GangPart> TakeFrom(Pool pool, const Candidate& candidate) {
  std::stable_sort(pool.begin(), pool.end(), [&](const GangPart& a, const GangPart& b) {
    if (a.slots.size() != b.slots.size()) return a.slots.size() > b.slots.size();
    return a.worker == candidate.home && b.worker != candidate.home;
  });
  std::vector<GangPart> parts;
  size_t missing = static_cast<size_t>(candidate.shape.slots);
  for (size_t i = 0; i < pool.size() && missing > 0; ++i) {
    if (pool[i].slots.size() >= missing) {
      while (i + 1 < pool.size() && pool[i + 1].slots.size() >= missing) ++i;
      pool[i].slots.resize(missing);
    }
    missing -= pool[i].slots.size();
    parts.push_back(std::move(pool[i]));
  }
  if (missing > 0) parts.clear();
  return parts;
}

std::vector<GangPart> FindOnSeveral(const Candidate& candidate, absl::Time ends,
                                    const SlotBoard& board) {
  if (FitsOnOne(candidate, board)) return {};
  for (const bool by_rack : {true, false}) {
    std::vector<GangPart> best;
    for (auto& [place, pool] : Pools(candidate, board, ends, by_rack)) {
      std::vector<GangPart> parts = TakeFrom(std::move(pool), candidate);
      if (!parts.empty() && (best.empty() || parts.size() < best.size())) best = std::move(parts);
    }
    if (!best.empty()) return best;
  }
  return {};
}

// Where nobody knows when they will be free, nothing may use them meanwhile.
bool Reserve(const Candidate& candidate, absl::Time now, SlotBoard& board) {
  std::vector<const WorkerSlots*> workers;
  for (const auto& [id, worker] : board.workers()) workers.push_back(&worker);
  const Soonest soonest = FindSoonest(candidate, now, FitsOnOne(candidate, board), workers);
  const bool known = soonest.start != absl::InfiniteFuture();
  for (const auto& [worker, slot] : soonest.slots) {
    board.Reserve(workers[worker]->worker, slot, known ? soonest.start : now);
  }
  return !soonest.slots.empty();
}

// Remembers what found no room in a call: nothing gets free meanwhile, so the like need not look
// again.
class Full {
 public:
  bool IsKnown(const Candidate& candidate, absl::Time ends) const {
    const auto it = since_.find(KeyOf(candidate));
    return it != since_.end() && it->second <= ends;
  }
  void Add(const Candidate& candidate, absl::Time ends) {
    const auto [it, added] = since_.emplace(KeyOf(candidate), ends);
    if (!added) it->second = std::min(it->second, ends);
  }

 private:
  using Key = std::pair<GangShape, bool>;
  static Key KeyOf(const Candidate& c) { return {c.shape, c.may_span}; }
  std::map<Key, absl::Time> since_;  // folds that end then, or later
};

// What owners have got in a call.
struct Taken {
  double share = 0;
  int slots = 0;       // of their limits
  bool keeps = false;  // those of a gang that waits are among them
};

// The first gang of an owner that waits keeps its part of the owner's limit, so that small folds of
// that owner do not pass it for ever.
void KeepOfLimit(const Candidate& candidate, const SlotBoard& board, Taken& taken) {
  const bool limited = candidate.slots_left != OwnerLimits::kNoLimit;
  const bool gang = candidate.shape.slots > 1 && !candidate.urgency.extra_seeds_only;
  if (!limited || !gang || taken.keeps) return;
  if (board.capacity().CountGangs(candidate.shape, candidate.may_span) == 0) return;
  taken.keeps = true;
  taken.slots += candidate.shape.slots;
}

// Of one Worker, or of all Workers of a pool, in slots that are free now.
int LargestFreeGang(const Candidate& candidate, bool span,
                    absl::Span<const WorkerSlots* const> workers) {
  int largest = 0;
  std::map<std::pair<std::string, std::string>, int> pools;
  for (const WorkerSlots* worker : workers) {
    if (!Suits(candidate, *worker)) continue;
    for (const auto& [device, slots] :
         FreeByDevice(candidate.shape, *worker, absl::InfinitePast())) {
      const int count = static_cast<int>(slots.size());
      largest = std::max(largest, count);
      if (span && !worker->network.empty()) {
        largest = std::max(largest, pools[{worker->network, device}] += count);
      }
    }
  }
  return largest;
}

}  // namespace

std::vector<Placement> PlaceFolds(absl::Span<const Candidate> candidates, absl::Time now,
                                  SlotBoard& board, size_t most) {
  struct Turn {
    Urgency urgency;
    size_t candidate;
    size_t next_fold;
    bool operator<(const Turn& other) const { return other.urgency < urgency; }
  };
  board.ReleaseReserved();
  std::priority_queue<Turn> turns;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!candidates[i].folds.empty()) turns.push({candidates[i].urgency, i, 0});
  }
  std::vector<Placement> placements;
  std::map<std::string, Taken> taken;  // by owner
  Full full;
  bool reserved = false;
  while (!turns.empty() && placements.size() < most) {
    Turn turn = turns.top();
    turns.pop();
    const Candidate& candidate = candidates[turn.candidate];
    Taken& owners = taken[candidate.owner];
    const double share = candidate.urgency.share + owners.share;
    if (!turn.urgency.has_deadline() && turn.urgency.share < share) {
      turn.urgency.share = share;
      turns.push(std::move(turn));
      continue;
    }
    // The slots that its owner may not have are for the next in line.
    if (candidate.shape.slots > candidate.slots_left - owners.slots) {
      KeepOfLimit(candidate, board, owners);
      continue;
    }
    const absl::Time ends = now + candidate.takes;
    std::vector<GangPart> parts;
    if (!full.IsKnown(candidate, ends)) {
      parts = FindOnOne(candidate, ends, board);
      if (parts.empty() && candidate.may_span) parts = FindOnSeveral(candidate, ends, board);
    }
    if (parts.empty()) {
      full.Add(candidate, ends);
      const bool waits = candidate.shape.slots > 1 && !candidate.urgency.extra_seeds_only;
      if (waits && !reserved) reserved = Reserve(candidate, now, board);
      KeepOfLimit(candidate, board, owners);
      continue;
    }
    for (const GangPart& part : parts) board.Take(part);
    placements.push_back({turn.candidate, candidate.folds[turn.next_fold], std::move(parts)});
    owners.share += OwnerShares::Held(candidate.shape.slots);
    owners.slots += candidate.shape.slots;
    ++turn.next_fold;
    ++turn.urgency.gangs;
    if (turn.next_fold < candidate.folds.size()) turns.push(std::move(turn));
  }
  return placements;
}

std::vector<Outlook> LookAhead(absl::Span<const Candidate> line, absl::Time now,
                               const SlotBoard& board) {
  std::vector<WorkerSlots> copies;  // as they will be when those in front have started
  std::vector<const WorkerSlots*> workers, later;
  copies.reserve(board.workers().size());
  for (const auto& [id, worker] : board.workers()) {
    workers.push_back(&worker);
    copies.push_back(worker);
    later.push_back(&copies.back());
  }
  std::vector<Outlook> outlooks;
  outlooks.reserve(line.size());
  for (const Candidate& candidate : line) {
    Outlook outlook;
    for (const WorkerSlots* worker : workers) {
      if (!Suits(candidate, *worker)) continue;
      for (const WorkerSlots::Slot& slot : worker->slots) {
        outlook.kept += slot.free && slot.reserved_from != absl::InfiniteFuture();
      }
    }
    outlook.one_worker = FitsOnOne(candidate, board);
    outlook.free = LargestFreeGang(candidate, candidate.may_span && !outlook.one_worker, workers);
    const Soonest soonest = FindSoonest(candidate, now, outlook.one_worker, later);
    outlook.start = soonest.start;
    for (const auto& [worker, slot] : soonest.slots) {
      copies[worker].slots[slot].free = false;
      copies[worker].slots[slot].free_at = soonest.start + candidate.takes;
    }
    outlooks.push_back(outlook);
  }
  return outlooks;
}

}  // namespace traind
