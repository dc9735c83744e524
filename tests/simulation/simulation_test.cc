// The promise under chance: 1,000 seeds, or as many as $SIMULATION_SEEDS says. One seed again:
//   bazel run //tests/simulation:simulate -- --seed N --history /tmp/history.jsonl
#include "tests/simulation/simulation.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "tests/simulation/checker.h"

namespace traind::simulation {
namespace {

constexpr uint64_t kSeeds = 1000;

uint64_t Seeds() {
  const char* const text = std::getenv("SIMULATION_SEEDS");
  uint64_t seeds = kSeeds;
  if (text != nullptr) {
    EXPECT_TRUE(absl::SimpleAtoi(text, &seeds)) << text;
  }
  return seeds;
}

TEST(SimulationTest, ThePromiseHoldsInEverySeed) {
  int64_t turns = 0;
  int broken = 0, measured = 0;
  double productive = 0;
  const uint64_t seeds = Seeds();
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const Outcome outcome = Simulate(seed);
    turns += outcome.turns;
    const auto violations = CheckHistory(outcome.history);
    for (const std::string& violation : violations) {
      ADD_FAILURE() << "seed " << seed << ": " << violation;
    }
    broken += !violations.empty();
    ASSERT_LT(broken, 5) << "and more";
    const double ratio = ProductiveRatio(outcome.history);
    if (ratio >= 0) {
      productive += ratio;
      ++measured;
    }
  }
  // A simulation in which little happens proves little.
  EXPECT_GT(turns, int64_t{100} * static_cast<int64_t>(seeds));
  ASSERT_GT(measured * uint64_t{50}, seeds);
  EXPECT_GE(productive / measured, 0.9);
}

TEST(SimulationTest, EverySortOfFaultAndEndHappens) {
  std::set<std::string> kinds, states, reasons, attempt_ends, rules, qualities, shares;
  for (uint64_t seed = 1; seed <= 250; ++seed) {
    for (const auto& record : Simulate(seed).history) {
      kinds.insert(record["kind"]);
      if (record["kind"] != "job") continue;
      states.insert(record["state"]);
      reasons.insert(record["reason"]);
      qualities.insert(record["quality"].dump());
      for (const auto& attempt : record["attempts"]) attempt_ends.insert(attempt[3]);
      for (const auto& decision : record["decisions"]) {
        rules.insert(decision[0]);
        const std::string to = decision[3];
        if (absl::StrContains(to, "of the rows")) shares.insert(decision[0]);
      }
    }
  }
  for (const char* kind : {"coordinator_end", "worker_end", "disk_full", "acked_fold", "published",
                           "conflict_ack", "submit_ack", "short_epoch"}) {
    EXPECT_TRUE(kinds.count(kind)) << kind;
  }
  for (const char* state :
       {"QUEUED", "PLANNING", "RUNNING", "FINALIZING", "SUCCEEDED", "FAILED", "CANCELLED"}) {
    EXPECT_TRUE(states.count(state)) << state;
  }
  for (const char* reason : {"COMPLETED", "BUDGET_REACHED", "FINISHED_BY_USER", "DATA_ERROR",
                             "CANCELLED_BY_USER", "NO_WORKER"}) {
    EXPECT_TRUE(reasons.count(reason)) << reason;
  }
  for (const char* reason : {"COMPLETED", "STOPPED_IN_TIME", "WORKER_LOST", "RANK_DIED", "HUNG",
                             "DIVERGED", "STORAGE_FULL"}) {
    EXPECT_TRUE(attempt_ends.count(reason)) << reason;
  }
  for (const char* rule : {"B2", "B3", "B4", "B5", "B9", "retry", "user"}) {
    EXPECT_TRUE(rules.count(rule)) << rule;
  }
  EXPECT_EQ(shares, std::set<std::string>({"B2", "B3", "B9"}));
  for (const char* quality : {"0", "1", "2", "3"}) EXPECT_TRUE(qualities.count(quality));
}

TEST(SimulationTest, TheSameSeedGivesTheSameHistory) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    EXPECT_EQ(HashOf(Simulate(seed).history), HashOf(Simulate(seed).history)) << "seed " << seed;
  }
  EXPECT_NE(HashOf(Simulate(1).history), HashOf(Simulate(2).history));
}

// The checker has to fail where the promise is broken.
class SeededBugTest : public testing::TestWithParam<std::pair<std::string, Bug>> {};

TEST_P(SeededBugTest, IsNoticed) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    if (!CheckHistory(Simulate(seed, GetParam().second).history).empty()) {
      RecordProperty("first_seed", static_cast<int>(seed));
      return;
    }
  }
  FAIL() << GetParam().first << " went unnoticed in " << kSeeds << " seeds";
}

INSTANTIATE_TEST_SUITE_P(All, SeededBugTest, testing::ValuesIn(AllBugs()),
                         [](const auto& info) { return info.param.first; });

}  // namespace
}  // namespace traind::simulation
