#include "server/schedule/slot_board.h"

#include <algorithm>

namespace traind {
namespace {

int FreeSlots(const WorkerSlots& worker) {
  return static_cast<int>(std::count_if(worker.slots.begin(), worker.slots.end(),
                                        [](const WorkerSlots::Slot& s) { return s.free; }));
}

bool Holds(const std::vector<int>& slots, int index) {
  return std::find(slots.begin(), slots.end(), index) != slots.end();
}

}  // namespace

std::map<SlotBoard::Group, int> SlotBoard::FreeByGroup(const WorkerSlots& worker) {
  std::map<Group, int> free;
  for (const WorkerSlots::Slot& slot : worker.slots) {
    if (slot.free) ++free[{worker.own_folder, slot.device}];
  }
  return free;
}

void SlotBoard::Link(const WorkerSlots& worker) {
  const int free = FreeSlots(worker);
  free_slots_ += free;
  for (const auto& [group, count] : FreeByGroup(worker)) with_room_[group].insert({free, &worker});
}

void SlotBoard::Unlink(const WorkerSlots& worker) {
  const int free = FreeSlots(worker);
  free_slots_ -= free;
  for (const auto& [group, count] : FreeByGroup(worker)) with_room_[group].erase({free, &worker});
}

void SlotBoard::Put(WorkerSlots worker) {
  const auto [it, added] = workers_.try_emplace(worker.worker);
  if (!added) {
    Unlink(it->second);
    capacity_.Remove(Capacity::KindOf(it->second));
  }
  it->second = std::move(worker);
  capacity_.Add(Capacity::KindOf(it->second));
  Link(it->second);
}

void SlotBoard::Remove(const std::string& worker) {
  const auto it = workers_.find(worker);
  if (it == workers_.end()) return;
  Unlink(it->second);
  capacity_.Remove(Capacity::KindOf(it->second));
  workers_.erase(it);
}

void SlotBoard::Take(const GangPart& part) {
  WorkerSlots& worker = workers_.at(part.worker);
  Unlink(worker);
  for (WorkerSlots::Slot& slot : worker.slots) {
    if (Holds(part.slots, slot.index)) slot.free = false;
  }
  Link(worker);
}

void SlotBoard::ExpectFree(const std::string& worker, const std::vector<int>& slots,
                           absl::Time at) {
  const auto it = workers_.find(worker);
  if (it == workers_.end()) return;
  for (WorkerSlots::Slot& slot : it->second.slots) {
    if (Holds(slots, slot.index)) slot.free_at = at;
  }
}

void SlotBoard::Reserve(const std::string& worker, size_t place, absl::Time from) {
  workers_.at(worker).slots[place].reserved_from = from;
  reserved_.emplace_back(worker, place);
}

void SlotBoard::ReleaseReserved() {
  for (const auto& [worker, place] : reserved_) {
    const auto it = workers_.find(worker);
    if (it == workers_.end() || place >= it->second.slots.size()) continue;
    it->second.slots[place].reserved_from = absl::InfiniteFuture();
  }
  reserved_.clear();
}

const WorkerSlots* SlotBoard::Find(const std::string& worker) const {
  const auto it = workers_.find(worker);
  return it == workers_.end() ? nullptr : &it->second;
}

const WorkerSlots* SlotBoard::FindFullest(const std::string& device, int least,
                                          bool needs_shared_folder,
                                          absl::FunctionRef<bool(const WorkerSlots&)> fits) const {
  Place best;
  for (const auto& [group, places] : with_room_) {
    if (group.first && needs_shared_folder) continue;
    if (!device.empty() && group.second != device) continue;
    for (auto it = places.lower_bound({least, nullptr}); it != places.end(); ++it) {
      if (best.worker != nullptr && !(*it < best)) break;
      if (!fits(*it->worker)) continue;
      best = *it;
      break;
    }
  }
  return best.worker;
}

}  // namespace traind
