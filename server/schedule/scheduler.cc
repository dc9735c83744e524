#include "server/schedule/scheduler.h"

#include <algorithm>
#include <map>
#include <queue>

namespace traind {
namespace {

// Returns free slots of one device for a gang; empty: there is no room.
std::vector<int> FindGang(const GangShape& shape, const WorkerSlots& worker) {
  std::map<std::string, std::vector<int>> by_device;
  for (const WorkerSlots::Slot& slot : worker.slots) {
    if (!slot.free || (!shape.device.empty() && slot.device != shape.device)) continue;
    std::vector<int>& gang = by_device[slot.device];
    gang.push_back(slot.index);
    if (static_cast<int>(gang.size()) == shape.slots) return gang;
  }
  return {};
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
    // The home Worker comes first, then the fullest one with room, which keeps large gaps for large
    // gangs.
    WorkerSlots* best = nullptr;
    std::vector<int> gang;
    for (WorkerSlots& worker : workers) {
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
    if (!best) continue;
    MarkTaken(*best, gang);
    placements.push_back(
        {turn.candidate, candidate.folds[turn.next_fold], best->worker, std::move(gang)});
    ++turn.next_fold;
    ++turn.urgency.gangs;
    if (turn.next_fold < candidate.folds.size()) turns.push(std::move(turn));
  }
  return placements;
}

int CountGangs(const GangShape& shape, absl::Span<const WorkerSlots> workers) {
  int gangs = 0;
  for (const WorkerSlots& worker : workers) {
    std::map<std::string, int> by_device;
    for (const WorkerSlots::Slot& slot : worker.slots) {
      if (shape.device.empty() || slot.device == shape.device) ++by_device[slot.device];
    }
    for (const auto& [device, slots] : by_device) gangs += slots / std::max(shape.slots, 1);
  }
  return gangs;
}

}  // namespace traind
