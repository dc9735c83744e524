#include "server/schedule/capacity.h"

#include <algorithm>
#include <utility>

namespace traind {
namespace {

int SlotsOf(const Capacity::Kind& kind) {
  int slots = 0;
  for (const auto& [device, count] : kind.slots) slots += count;
  return slots;
}

// Calls visit(slots, pool) for each device of the kind that suits; pool names the network and
// device.
template <typename Visit>
void ForDevices(const Capacity::Kind& kind, const std::string& device, Visit visit) {
  for (const auto& [name, count] : kind.slots) {
    if (device.empty() || name == device) visit(count, std::make_pair(kind.network, name));
  }
}

}  // namespace

Capacity::Kind Capacity::KindOf(const WorkerSlots& worker) {
  Kind kind{worker.own_folder, worker.network, {}};
  for (const WorkerSlots::Slot& slot : worker.slots) ++kind.slots[slot.device];
  return kind;
}

void Capacity::Add(const Kind& kind) {
  ++kinds_[kind];
  slots_ += SlotsOf(kind);
  own_folders_ += kind.own_folder;
}

void Capacity::Remove(const Kind& kind) {
  const auto it = kinds_.find(kind);
  if (--it->second == 0) kinds_.erase(it);
  slots_ -= SlotsOf(kind);
  own_folders_ -= kind.own_folder;
}

int Capacity::CountGangs(const GangShape& shape, bool may_span, bool needs_shared_folder) const {
  const int size = std::max(shape.slots, 1);
  int gangs = 0;
  std::map<std::pair<std::string, std::string>, int> pools;
  for (const auto& [kind, workers] : kinds_) {
    if (kind.own_folder && needs_shared_folder) continue;
    ForDevices(kind, shape.device, [&, count = workers](int slots, const auto& pool) {
      gangs += count * (slots / size);
      if (may_span && !pool.first.empty()) pools[pool] += count * slots;
    });
  }
  // A gang spans Workers only where none could hold it.
  if (gangs > 0 || !may_span) return gangs;
  for (const auto& [pool, slots] : pools) gangs += slots / size;
  return gangs;
}

int Capacity::LargestGang(const std::string& device, bool may_span,
                          bool needs_shared_folder) const {
  int largest = 0;
  std::map<std::pair<std::string, std::string>, int> pools;
  for (const auto& [kind, workers] : kinds_) {
    if (kind.own_folder && needs_shared_folder) continue;
    ForDevices(kind, device, [&, count = workers](int slots, const auto& pool) {
      largest = std::max(largest, slots);
      if (may_span && !pool.first.empty()) {
        largest = std::max(largest, pools[pool] += count * slots);
      }
    });
  }
  return largest;
}

}  // namespace traind
