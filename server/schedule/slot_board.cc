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

std::vector<SlotBoard::Group> SlotBoard::GroupsOf(const WorkerSlots& worker) {
  std::set<DeviceKind> kinds;
  for (const WorkerSlots::Slot& slot : worker.slots) {
    if (slot.free) kinds.insert(slot.kind());
  }
  std::vector<Group> groups;
  for (const DeviceKind& kind : kinds) {
    groups.emplace_back("", kind);
    for (const std::string& label : worker.labels) groups.emplace_back(label, kind);
  }
  return groups;
}

void SlotBoard::Link(const WorkerSlots& worker) {
  const int free = FreeSlots(worker);
  free_slots_ += free;
  for (const Group& group : GroupsOf(worker)) with_room_[group].insert({free, &worker});
}

void SlotBoard::Unlink(const WorkerSlots& worker) {
  const int free = FreeSlots(worker);
  free_slots_ -= free;
  for (const Group& group : GroupsOf(worker)) {
    const auto it = with_room_.find(group);
    it->second.erase({free, &worker});
    if (it->second.empty()) with_room_.erase(it);
  }
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

const WorkerSlots* SlotBoard::FindFullest(const GangShape& shape,
                                          absl::FunctionRef<bool(const WorkerSlots&)> fits) const {
  const Constraints& asked = shape.constraints;
  const std::string label = capacity_.RarestOf(asked.labels);
  Place best;
  for (auto group = with_room_.lower_bound({label, {}});
       group != with_room_.end() && group->first.first == label; ++group) {
    if (!SuitsSlot(shape, group->first.second)) continue;
    const std::set<Place>& places = group->second;
    for (auto it = places.lower_bound({shape.slots, nullptr}); it != places.end(); ++it) {
      if (best.worker != nullptr && !(*it < best)) break;
      if (!HasLabels(it->worker->labels, asked) || !fits(*it->worker)) continue;
      best = *it;
      break;
    }
  }
  return best.worker;
}

}  // namespace traind
