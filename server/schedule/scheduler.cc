#include "server/schedule/scheduler.h"

#include <algorithm>
#include <map>
#include <queue>
#include <utility>

namespace traind {
namespace {

constexpr absl::Time kAnyTime = absl::InfinitePast();

// Returns a Worker's slots that suit the shape, by device. ends: free ones only, which are not
// reserved before that.
std::map<std::string, std::vector<int>> SlotsByDevice(const std::string& device,
                                                      const WorkerSlots& worker, bool free_only,
                                                      absl::Time ends = kAnyTime) {
  std::map<std::string, std::vector<int>> by_device;
  for (const WorkerSlots::Slot& slot : worker.slots) {
    if ((free_only && !slot.free) || (!device.empty() && slot.device != device)) continue;
    if (slot.reserved_from < ends) continue;
    by_device[slot.device].push_back(slot.index);
  }
  return by_device;
}

// Returns free slots of one device for a gang; empty: there is no room.
std::vector<int> FindGang(const GangShape& shape, const WorkerSlots& worker, absl::Time ends) {
  for (auto& [device, slots] : SlotsByDevice(shape.device, worker, /*free_only=*/true, ends)) {
    if (static_cast<int>(slots.size()) < shape.slots) continue;
    slots.resize(static_cast<size_t>(shape.slots));
    return std::move(slots);
  }
  return {};
}

bool Suits(const Candidate& candidate, const WorkerSlots& worker) {
  return !worker.own_folder || !candidate.needs_shared_folder;
}

void MarkTaken(WorkerSlots& worker, const std::vector<int>& gang) {
  for (WorkerSlots::Slot& slot : worker.slots) {
    if (std::find(gang.begin(), gang.end(), slot.index) != gang.end()) slot.free = false;
  }
}

int FreeSlots(const WorkerSlots& worker) {
  return static_cast<int>(std::count_if(worker.slots.begin(), worker.slots.end(),
                                        [](const WorkerSlots::Slot& s) { return s.free; }));
}

// The home Worker comes first, then the fullest one with room, which keeps large gaps for large
// gangs.
std::vector<GangPart> FindOnOne(const Candidate& candidate, absl::Time ends,
                                const std::vector<WorkerSlots>& workers) {
  const WorkerSlots* best = nullptr;
  std::vector<int> gang;
  for (const WorkerSlots& worker : workers) {
    if (!Suits(candidate, worker)) continue;
    const bool home = worker.worker == candidate.home;
    if (best && !home &&
        (best->worker == candidate.home || FreeSlots(worker) >= FreeSlots(*best))) {
      continue;
    }
    std::vector<int> found = FindGang(candidate.shape, worker, ends);
    if (found.empty()) continue;
    best = &worker;
    gang = std::move(found);
  }
  if (best == nullptr) return {};
  return {{best->worker, std::move(gang)}};
}

// Slots that could work together, by their Workers.
using Pool = std::vector<GangPart>;

// Returns the pools from which a gang that spans Workers may take its slots: by network and device.
std::map<std::pair<std::string, std::string>, Pool> Pools(const Candidate& candidate,
                                                          absl::Span<const WorkerSlots> workers,
                                                          bool free_only, absl::Time ends) {
  std::map<std::pair<std::string, std::string>, Pool> pools;
  for (const WorkerSlots& worker : workers) {
    if (worker.network.empty() || !Suits(candidate, worker)) continue;
    for (auto& [device, slots] : SlotsByDevice(candidate.shape.device, worker, free_only, ends)) {
      pools[{worker.network, device}].push_back({worker.worker, std::move(slots)});
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

// A gang for which some Worker has slots enough waits for that Worker.
bool FitsOnOne(const Candidate& candidate, absl::Span<const WorkerSlots> workers) {
  return std::any_of(workers.begin(), workers.end(), [&](const WorkerSlots& worker) {
    return Suits(candidate, worker) && CountGangs(candidate.shape, false, {&worker, 1}) > 0;
  });
}

std::vector<GangPart> FindOnSeveral(const Candidate& candidate, absl::Time ends,
                                    const std::vector<WorkerSlots>& workers) {
  if (FitsOnOne(candidate, workers)) return {};
  std::vector<GangPart> best;
  for (auto& [place, pool] : Pools(candidate, workers, /*free_only=*/true, ends)) {
    std::vector<GangPart> parts = TakeFrom(std::move(pool), candidate);
    if (!parts.empty() && (best.empty() || parts.size() < best.size())) best = std::move(parts);
  }
  return best;
}

using SlotRef = std::pair<size_t, size_t>;  // a Worker, and one of its slots

// The slots that a gang could have soonest, of one Worker or one pool of several.
struct Soonest {
  absl::Time start = absl::InfiniteFuture();
  int free = -1;  // of them, now
  std::vector<SlotRef> slots;
};

Soonest FindSoonest(const Candidate& candidate, absl::Time now,
                    absl::Span<const WorkerSlots> workers) {
  const bool on_one = FitsOnOne(candidate, workers);
  if (!on_one && !candidate.may_span) return {};
  // By place and device.
  std::map<std::pair<std::string, std::string>, std::vector<std::pair<absl::Time, SlotRef>>> pools;
  for (size_t w = 0; w < workers.size(); ++w) {
    const WorkerSlots& worker = workers[w];
    if (!Suits(candidate, worker) || (!on_one && worker.network.empty())) continue;
    for (size_t i = 0; i < worker.slots.size(); ++i) {
      const WorkerSlots::Slot& slot = worker.slots[i];
      if (!candidate.shape.device.empty() && slot.device != candidate.shape.device) continue;
      pools[{on_one ? worker.worker : worker.network, slot.device}].push_back(
          {slot.free ? now : std::max(now, slot.free_at), {w, i}});
    }
  }
  Soonest best;
  for (auto& [place, slots] : pools) {
    if (slots.size() < static_cast<size_t>(candidate.shape.slots)) continue;
    std::sort(slots.begin(), slots.end());
    slots.resize(static_cast<size_t>(candidate.shape.slots));
    Soonest found;
    found.start = slots.back().first;
    found.free = 0;
    for (const auto& [at, ref] : slots) {
      found.free += workers[ref.first].slots[ref.second].free;
      found.slots.push_back(ref);
    }
    if (found.start < best.start || (found.start == best.start && found.free > best.free)) {
      best = std::move(found);
    }
  }
  return best;
}

// Where nobody knows when they will be free, nothing may use them meanwhile.
bool Reserve(const Candidate& candidate, absl::Time now, std::vector<WorkerSlots>& workers) {
  const Soonest soonest = FindSoonest(candidate, now, workers);
  const bool known = soonest.start != absl::InfiniteFuture();
  for (const auto& [worker, slot] : soonest.slots) {
    workers[worker].slots[slot].reserved_from = known ? soonest.start : now;
  }
  return !soonest.slots.empty();
}

}  // namespace

std::vector<Placement> PlaceFolds(absl::Span<const Candidate> candidates, absl::Time now,
                                  std::vector<WorkerSlots>& workers) {
  struct Turn {
    Urgency urgency;
    size_t candidate;
    size_t next_fold;
    bool operator<(const Turn& other) const { return other.urgency < urgency; }
  };
  std::priority_queue<Turn> turns;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!candidates[i].folds.empty()) turns.push({candidates[i].urgency, i, 0});
  }
  std::vector<Placement> placements;
  std::map<std::string, double> taken;  // by owner, in this call
  bool reserved = false;
  while (!turns.empty()) {
    Turn turn = turns.top();
    turns.pop();
    const Candidate& candidate = candidates[turn.candidate];
    double& owners = taken[candidate.owner];
    const double share = candidate.urgency.share + owners;
    if (!turn.urgency.has_deadline() && turn.urgency.share < share) {
      turn.urgency.share = share;
      turns.push(std::move(turn));
      continue;
    }
    const absl::Time ends = now + candidate.takes;
    std::vector<GangPart> parts = FindOnOne(candidate, ends, workers);
    if (parts.empty() && candidate.may_span) parts = FindOnSeveral(candidate, ends, workers);
    if (parts.empty()) {
      const bool waits = candidate.shape.slots > 1 && !candidate.urgency.extra_seeds_only;
      if (waits && !reserved) reserved = Reserve(candidate, now, workers);
      continue;
    }
    for (const GangPart& part : parts) {
      for (WorkerSlots& worker : workers) {
        if (worker.worker == part.worker) MarkTaken(worker, part.slots);
      }
    }
    placements.push_back({turn.candidate, candidate.folds[turn.next_fold], std::move(parts)});
    owners += OwnerShares::Held(candidate.shape.slots);
    ++turn.next_fold;
    ++turn.urgency.gangs;
    if (turn.next_fold < candidate.folds.size()) turns.push(std::move(turn));
  }
  return placements;
}

std::vector<Outlook> LookAhead(absl::Span<const Candidate> line, absl::Time now,
                               absl::Span<const WorkerSlots> workers) {
  std::vector<WorkerSlots> later(workers.begin(), workers.end());
  std::vector<Outlook> outlooks;
  outlooks.reserve(line.size());
  for (const Candidate& candidate : line) {
    Outlook outlook;
    std::vector<WorkerSlots> suitable;
    for (const WorkerSlots& worker : workers) {
      if (!Suits(candidate, worker)) continue;
      suitable.push_back(worker);
      for (const WorkerSlots::Slot& slot : worker.slots) {
        outlook.kept += slot.free && slot.reserved_from != absl::InfiniteFuture();
      }
    }
    const GangShape& shape = candidate.shape;
    outlook.one_worker = FitsOnOne(candidate, suitable);
    const bool span = candidate.may_span && !outlook.one_worker;
    outlook.free = LargestGang(shape.device, span, suitable, /*free_only=*/true);
    const Soonest soonest = FindSoonest(candidate, now, later);
    outlook.start = soonest.start;
    for (const auto& [worker, slot] : soonest.slots) {
      later[worker].slots[slot].free = false;
      later[worker].slots[slot].free_at = soonest.start + candidate.takes;
    }
    outlooks.push_back(outlook);
  }
  return outlooks;
}

int CountGangs(const GangShape& shape, bool may_span, absl::Span<const WorkerSlots> workers) {
  const int size = std::max(shape.slots, 1);
  int gangs = 0;
  std::map<std::pair<std::string, std::string>, int> pools;
  for (const WorkerSlots& worker : workers) {
    for (const auto& [device, slots] : SlotsByDevice(shape.device, worker, /*free_only=*/false)) {
      gangs += static_cast<int>(slots.size()) / size;
      if (!worker.network.empty()) {
        pools[{worker.network, device}] += static_cast<int>(slots.size());
      }
    }
  }
  // A gang spans Workers only where none could hold it.
  if (gangs > 0 || !may_span) return gangs;
  for (const auto& [place, slots] : pools) gangs += slots / size;
  return gangs;
}

int LargestGang(const std::string& device, bool may_span, absl::Span<const WorkerSlots> workers,
                bool free_only) {
  int largest = 0;
  std::map<std::pair<std::string, std::string>, int> pools;
  for (const WorkerSlots& worker : workers) {
    for (const auto& [kind, slots] : SlotsByDevice(device, worker, free_only)) {
      const int count = static_cast<int>(slots.size());
      largest = std::max(largest, count);
      if (may_span && !worker.network.empty()) {
        largest = std::max(largest, pools[{worker.network, kind}] += count);
      }
    }
  }
  return largest;
}

}  // namespace traind
