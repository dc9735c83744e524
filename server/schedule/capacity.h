// How many gangs the Workers could run, whether their slots are free or not. Workers with the same
// slots on the same network are counted as one kind, so that questions cost as many steps as there
// are kinds, not Workers.
//
// Threads: confined to one.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "server/schedule/slots.h"

namespace traind {

class Capacity {
 public:
  // All of a Worker that counts.
  struct Kind {
    bool own_folder = false;
    std::string network;
    std::map<std::string, int> slots;  // by device
    friend bool operator<(const Kind& a, const Kind& b) {
      return std::tie(a.own_folder, a.network, a.slots) <
             std::tie(b.own_folder, b.network, b.slots);
    }
  };
  static Kind KindOf(const WorkerSlots& worker);

  void Add(const Kind& kind);
  // REQUIRES: that was added.
  void Remove(const Kind& kind);

  // Counts the gangs of that shape that could run at once. may_span: a gang may have slots of
  // several Workers, where none could hold it. needs_shared_folder: Workers with a folder of their
  // own do not count.
  int CountGangs(const GangShape& shape, bool may_span, bool needs_shared_folder) const;
  // The most slots that one gang can have.
  int LargestGang(const std::string& device, bool may_span, bool needs_shared_folder) const;

  int slots() const { return slots_; }
  bool has_own_folders() const { return own_folders_ > 0; }

 private:
  std::map<Kind, int> kinds_;  // how many Workers
  int slots_ = 0;
  int own_folders_ = 0;  // Workers
};

}  // namespace traind
