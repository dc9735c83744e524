// Retention, as server/retention/collector.h does it: what goes is decided by retention_plan.h and
// job_needs.h, and a deletion has three steps. Each takes some time, in which all else goes on.
// Threads: confined to one.
#pragma once

#include <absl/container/flat_hash_set.h>

#include <deque>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/retention/retention_plan.h"
#include "tests/simulation/sim_coordinator.h"
#include "tests/simulation/sim_disk.h"
#include "tests/simulation/world.h"

namespace traind::simulation {

class SimCollector {
 public:
  SimCollector(World* world, Disk* disk, SimCoordinator* coordinator, uint64_t seed)
      : world_(world), disk_(disk), coordinator_(coordinator), chance_(seed) {}

  // Collects now and then from now on.
  void Start();
  // A user asks for it.
  void Delete(const std::string& job);

 private:
  void CollectSoon();
  void Collect();
  void Plan(StateContent content);
  void DropNext();
  void DropInterim(const std::string& job);
  // Its files, and then its rows.
  void FinishDeletion(const std::string& job);
  JobKept KeptOf(const EndedJob& ended, const Job& job) const;
  std::vector<std::string> InterimOf(const Job& job) const;
  absl::Duration Step() { return absl::Seconds(chance_.LogUniform(0.0005, 0.1)); }

  World* world_;
  Disk* disk_;
  SimCoordinator* coordinator_;
  Chance chance_;
  RetentionLimits limits_;
  absl::Duration every_;
  int starts_ = 0;                 // of the traind that collects
  std::deque<GarbageItem> items_;  // that are to go
};

}  // namespace traind::simulation
