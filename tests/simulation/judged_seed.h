// One seed of the simulation, judged by all rules that hold for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/simulation/checker.h"
#include "tests/simulation/simulation.h"

namespace traind::simulation {

struct JudgedSeed {
  Outcome outcome;
  std::vector<std::string> violations;  // a line each
};

// Where something may go wrong, the same Jobs run without faults, too, to compare what became of
// them. Adds to `counts` unless it is null.
JudgedSeed JudgeSeed(uint64_t seed, With with, Machines machines, Counts* counts = nullptr);

}  // namespace traind::simulation
