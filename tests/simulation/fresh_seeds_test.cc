// The promise under chance, in seeds that nobody has tried: 500, or as many as $SIMULATION_FRESH
// says. What breaks it is told with the command that repeats it.
#include <absl/strings/numbers.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/simulation/judged_seed.h"

namespace traind::simulation {
namespace {

constexpr uint64_t kSeeds = 500;
// Fixed ones lie below.
constexpr uint64_t kFirst = 1'000'000'000, kLast = 1'000'000'000'000;

struct Part {
  const char* machines;  // as `simulate --machines` names them
  Machines of;
};
// Each has a fifth of the seeds, and they may run side by side.
constexpr Part kParts[] = {{"any", Machines::kAny},
                           {"any", Machines::kAny},
                           {"spanned", Machines::kSpanned},
                           {"fleet", Machines::kFleet},
                           {"asked", Machines::kAsked}};

uint64_t Seeds() {
  const char* const text = std::getenv("SIMULATION_FRESH");
  uint64_t seeds = kSeeds;
  if (text != nullptr) {
    EXPECT_TRUE(absl::SimpleAtoi(text, &seeds)) << text;
  }
  return seeds;
}

uint64_t FirstSeed() {
  std::random_device chance;
  return std::uniform_int_distribution<uint64_t>(kFirst, kLast)(chance);
}

class FreshSeedsTest : public testing::TestWithParam<Part> {};

TEST_P(FreshSeedsTest, KeepThePromise) {
  const Part& part = GetParam();
  const uint64_t first = FirstSeed(), seeds = Seeds() / std::size(kParts);
  std::cout << "seeds " << first << " to " << first + seeds - 1 << std::endl;
  int broken = 0;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    const std::vector<std::string> violations = JudgeSeed(seed, With::kFaults, part.of).violations;
    if (violations.empty()) continue;
    for (const std::string& violation : violations) {
      ADD_FAILURE() << "seed " << seed << ": " << violation;
    }
    std::cout << "again: bazel run //tests/simulation:simulate -- --machines " << part.machines
              << " --seed " << seed << " --history /tmp/history.jsonl" << std::endl;
    ASSERT_LT(++broken, 5) << "and more";
  }
}

INSTANTIATE_TEST_SUITE_P(Fifth, FreshSeedsTest, testing::ValuesIn(kParts));

}  // namespace
}  // namespace traind::simulation
