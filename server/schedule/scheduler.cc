#include "server/schedule/scheduler.h"

#include <algorithm>
#include <map>
#include <queue>
#include <utility>

namespace traind {
namespace {

// Returns a Worker's slots that suit the shape, by device.
std::map<std::string, std::vector<int>> SlotsByDevice(const std::string& device,
                                                      const WorkerSlots& worker, bool free_only) {
  std::map<std::string, std::vector<int>> by_device;
  for (const WorkerSlots::Slot& slot : worker.slots) {
    if ((free_only && !slot.free) || (!device.empty() && slot.device != device)) continue;
    by_device[slot.device].push_back(slot.index);
  }
  return by_device;
}

// Returns free slots of one device for a gang; empty: there is no room.
std::vector<int> FindGang(const GangShape& shape, const WorkerSlots& worker) {
  for (auto& [device, slots] : SlotsByDevice(shape.device, worker, /*free_only=*/true)) {
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
std::vector<GangPart> FindOnOne(const Candidate& candidate,
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
    std::vector<int> found = FindGang(candidate.shape, worker);
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
                                                          bool free_only) {
  std::map<std::pair<std::string, std::string>, Pool> pools;
  for (const WorkerSlots& worker : workers) {
    if (worker.network.empty() || !Suits(candidate, worker)) continue;
    for (auto& [device, slots] : SlotsByDevice(candidate.shape.device, worker, free_only)) {
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
std::vector<GangPart> FindOnSeveral(const Candidate& candidate,
                                    const std::vector<WorkerSlots>& workers) {
  for (const WorkerSlots& worker : workers) {
    if (!Suits(candidate, worker)) continue;
    if (CountGangs(candidate.shape, false, {&worker, 1}) > 0) return {};
  }
  std::vector<GangPart> best;
  for (auto& [place, pool] : Pools(candidate, workers, /*free_only=*/true)) {
    std::vector<GangPart> parts = TakeFrom(std::move(pool), candidate);
    if (!parts.empty() && (best.empty() || parts.size() < best.size())) best = std::move(parts);
  }
  return best;
}

}  // namespace

std::vector<Placement> PlaceFolds(absl::Span<const Candidate> candidates,
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
  while (!turns.empty()) {
    Turn turn = turns.top();
    turns.pop();
    const Candidate& candidate = candidates[turn.candidate];
    std::vector<GangPart> parts = FindOnOne(candidate, workers);
    if (parts.empty() && candidate.may_span) parts = FindOnSeveral(candidate, workers);
    if (parts.empty()) continue;
    for (const GangPart& part : parts) {
      for (WorkerSlots& worker : workers) {
        if (worker.worker == part.worker) MarkTaken(worker, part.slots);
      }
    }
    placements.push_back({turn.candidate, candidate.folds[turn.next_fold], std::move(parts)});
    ++turn.next_fold;
    ++turn.urgency.gangs;
    if (turn.next_fold < candidate.folds.size()) turns.push(std::move(turn));
  }
  return placements;
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
