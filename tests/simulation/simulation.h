// One simulated history from one seed: Jobs, machines, users and faults by chance,
// around the real core.
#pragma once

#include <cstdint>
#include <string>

#include "tests/simulation/world.h"

namespace traind::simulation {

struct Outcome {
  History history;
  int jobs = 0;
  bool faults = false;  // something may go wrong in it
  int64_t turns = 0;
};

// With::kNoFaults: the same Jobs on the same machines, and nothing goes wrong.
enum class With { kFaults, kNoFaults };
// Machines::kSpanned: two to four Workers on one network, and gangs that need several of them.
// Machines::kFleet: racks, labels, GPUs and classes (fleet.h), so that folds often make room.
// Machines::kLimited: up to three Workers, and two owners who may use only so many slots at a time.
// Machines::kAsked: as kAny; clients ask Jobs that exist for later predictions and for rows
// (clients.h), and what is no longer needed is deleted.
enum class Machines { kAny, kSpanned, kFleet, kLimited, kAsked };
Outcome Simulate(uint64_t seed, With with = With::kFaults, Machines machines = Machines::kAny);

// Equal histories have equal hashes.
uint64_t HashOf(const History& history);

}  // namespace traind::simulation
