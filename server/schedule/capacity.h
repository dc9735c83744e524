// How many gangs the Workers could run, whether their slots are free or not. Workers with the same
// slots and labels on the same network are counted as one kind, so that questions cost as many
// steps as there are kinds, not Workers. Where a gang asks for labels, only the kinds with one of
// them are looked at; where it does not, labels make no kinds.
//
// Threads: confined to one.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "server/schedule/slots.h"

namespace traind {

class Capacity {
 public:
  // All of a Worker that counts.
  struct Kind {
    bool own_folder = false;
    std::string network;
    std::map<DeviceKind, int> slots;
    std::set<std::string> labels;
    friend bool operator<(const Kind& a, const Kind& b) {
      return std::tie(a.own_folder, a.network, a.slots, a.labels) <
             std::tie(b.own_folder, b.network, b.slots, b.labels);
    }
  };
  static Kind KindOf(const WorkerSlots& worker);

  void Add(const Kind& kind);
  // REQUIRES: that was added.
  void Remove(const Kind& kind);

  // Counts the gangs of that shape that could run at once. may_span: a gang may have slots of
  // several Workers, where none could hold it. in_shared_folders: Workers with a folder of their
  // own do not count.
  int CountGangs(const GangShape& shape, bool may_span, bool in_shared_folders = false) const;
  // The most slots that one gang can have of what the shape asks for; its size does not count.
  int LargestGang(const GangShape& shape, bool may_span) const;
  // Says which label or GPU that the shape asks for no Worker has: "no Worker has label rack=a".
  // Empty: what is missing is a number of slots.
  std::string WhatIsMissing(const GangShape& shape) const;
  // The label of those that the fewest Workers have; empty: none is asked for.
  std::string RarestOf(const std::set<std::string>& labels) const;

  int slots() const { return slots_; }

 private:
  using Kinds = std::map<Kind, int>;  // how many Workers
  struct Labelled {
    Kinds kinds;
    int workers = 0;
  };

  void Change(const Kind& kind, int change);
  const Kinds& KindsFor(const Constraints& asked) const;
  // Calls visit(workers, slots, pool) for each kind that suits and each device of it; pool names
  // the network and device.
  template <typename Visit>
  void ForSuiting(const GangShape& shape, bool in_shared_folders, Visit visit) const;

  Kinds kinds_;                               // without labels
  std::map<std::string, Labelled> labelled_;  // with theirs, by each of their labels
  int slots_ = 0;
};

}  // namespace traind
