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
  int64_t turns = 0;
};

Outcome Simulate(uint64_t seed, Bug bug = Bug::kNone);

// Equal histories have equal hashes.
uint64_t HashOf(const History& history);

}  // namespace traind::simulation
