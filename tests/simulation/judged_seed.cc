#include "tests/simulation/judged_seed.h"

namespace traind::simulation {

JudgedSeed JudgeSeed(uint64_t seed, With with, Machines machines, Counts* counts) {
  JudgedSeed judged;
  judged.outcome = Simulate(seed, with, machines);
  judged.violations = CheckHistory(judged.outcome.history, counts);
  if (!judged.outcome.faults || machines == Machines::kLimited) return judged;
  const History calm = Simulate(seed, With::kNoFaults, machines).history;
  std::vector<std::string> more = CheckQuality(judged.outcome.history, calm);
  if (machines == Machines::kFleet || machines == Machines::kAsked) {
    // Some rules hold only where nothing goes wrong.
    for (const std::string& violation : CheckHistory(calm, counts)) {
      more.push_back("without faults: " + violation);
    }
  }
  judged.violations.insert(judged.violations.end(), more.begin(), more.end());
  return judged;
}

}  // namespace traind::simulation
