// The Workers that take tasks, and which of their slots are free, held or reserved. Its owner tells
// every change of a Worker; looking for a free place costs the logarithm of the number of Workers.
//
// Threads: confined to one.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/time/time.h>

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "server/schedule/capacity.h"
#include "server/schedule/slots.h"

namespace traind {

class SlotBoard {
 public:
  using Workers = std::map<std::string, WorkerSlots>;

  SlotBoard() = default;
  SlotBoard(const SlotBoard&) = delete;
  SlotBoard& operator=(const SlotBoard&) = delete;

  // Adds a Worker, or replaces what is known of it.
  void Put(WorkerSlots worker);
  void Remove(const std::string& worker);
  // Those slots are free no more. REQUIRES: a known Worker.
  void Take(const GangPart& part);
  // When a slot that is held will be free. An unknown Worker is passed over.
  void ExpectFree(const std::string& worker, const std::vector<int>& slots, absl::Time at);
  // Keeps a slot of a known Worker from then on, until ReleaseReserved. place: among its slots.
  void Reserve(const std::string& worker, size_t place, absl::Time from);
  void ReleaseReserved();

  const Workers& workers() const { return workers_; }
  int free_slots() const { return free_slots_; }
  // Of all slots, free or not.
  const Capacity& capacity() const { return capacity_; }
  const WorkerSlots* Find(const std::string& worker) const;

  // Goes over the Workers with the labels that the shape asks for and as many free slots as it has,
  // at least one of them of a kind that suits, from the fewest free slots to the most and by id
  // among equals. Returns the first that fits, or null.
  const WorkerSlots* FindFullest(const GangShape& shape,
                                 absl::FunctionRef<bool(const WorkerSlots&)> fits) const;

 private:
  // Sorts by the number of free slots, then by id; null comes first.
  struct Place {
    int free = 0;
    const WorkerSlots* worker = nullptr;
    friend bool operator<(const Place& a, const Place& b) {
      if (a.free != b.free) return a.free < b.free;
      if (a.worker == nullptr || b.worker == nullptr) return b.worker != nullptr;
      return a.worker->worker < b.worker->worker;
    }
  };
  // A label and the kind of a free slot. Each Worker is in those of each of its labels, and in
  // those of the empty one.
  using Group = std::pair<std::string, DeviceKind>;

  static std::vector<Group> GroupsOf(const WorkerSlots& worker);
  void Link(const WorkerSlots& worker);
  void Unlink(const WorkerSlots& worker);

  Workers workers_;
  Capacity capacity_;
  int free_slots_ = 0;
  std::map<Group, std::set<Place>> with_room_;
  std::vector<std::pair<std::string, size_t>> reserved_;
};

}  // namespace traind
