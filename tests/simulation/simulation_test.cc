// The promise under chance: 1,000 seeds, or as many as $SIMULATION_SEEDS says. One seed again:
//   bazel run //tests/simulation:simulate -- --seed N --history /tmp/history.jsonl
#include "tests/simulation/simulation.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "tests/simulation/checker.h"
#include "tests/simulation/judged_seed.h"
#include "tests/simulation/sim_disk.h"

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

// Each part has every fourth seed, so that parts may run side by side.
constexpr uint64_t kParts = 4;
class PromiseTest : public testing::TestWithParam<uint64_t> {};

TEST_P(PromiseTest, HoldsInEverySeed) {
  int64_t turns = 0;
  int broken = 0, measured = 0;
  double productive = 0;
  const uint64_t seeds = Seeds() / kParts;
  for (uint64_t i = 0; i < seeds; ++i) {
    const uint64_t seed = 1 + GetParam() + i * kParts;
    const auto [outcome, violations] = JudgeSeed(seed, With::kFaults, Machines::kAny);
    turns += outcome.turns;
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

INSTANTIATE_TEST_SUITE_P(Quarter, PromiseTest, testing::Range(uint64_t{0}, kParts));

class GangPromiseTest : public testing::TestWithParam<uint64_t> {};

TEST_P(GangPromiseTest, HoldsWhereGangsSpanWorkers) {
  int broken = 0;
  for (uint64_t i = 0; i < Seeds() / kParts; ++i) {
    const uint64_t seed = 1 + GetParam() + i * kParts;
    const auto violations = JudgeSeed(seed, With::kFaults, Machines::kSpanned).violations;
    for (const std::string& violation : violations) {
      ADD_FAILURE() << "seed " << seed << ": " << violation;
    }
    broken += !violations.empty();
    ASSERT_LT(broken, 5) << "and more";
  }
}

INSTANTIATE_TEST_SUITE_P(Quarter, GangPromiseTest, testing::Range(uint64_t{0}, kParts));

// Two owners with a limit of slots: neither ever uses more, and what is promised to a Job holds.
TEST(LimitTest, NoOwnerUsesMoreSlotsThanItMay) {
  Counts counts;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    for (const With with : {With::kFaults, With::kNoFaults}) {
      const Outcome outcome = Simulate(seed, with, Machines::kLimited);
      for (const std::string& violation : CheckHistory(outcome.history, &counts)) {
        ADD_FAILURE() << "seed " << seed << ": " << violation;
      }
    }
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(counts["owners_at_their_limit"], 500);
}

TEST(LimitTest, TheCheckerSeesAnOwnerWithMore) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    History history = Simulate(seed, With::kNoFaults, Machines::kLimited).history;
    Counts counts;
    CheckHistory(history, &counts);
    if (counts["owners_at_their_limit"] == 0) continue;
    for (nlohmann::json& r : history) {
      if (r["kind"] == "seed" && r["owner_slots"] > 1)
        r["owner_slots"] = r["owner_slots"].get<int>() - 1;
    }
    const auto found = CheckHistory(history);
    const bool seen = std::any_of(found.begin(), found.end(), [](const std::string& violation) {
      return absl::StrContains(violation, " slots and may use ");
    });
    if (seen) return;
  }
  FAIL() << "nobody reached a limit of two";
}

// Without these the seeds above would prove little: gangs that begin on several Workers, lose a
// host, and go on with fewer ranks.
TEST(SimulationTest, GangsSpanWorkersLoseOneAndShrink) {
  std::set<int64_t> begun, lost;
  int shrunk = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    std::map<std::string, int> most;  // ranks of a gang, by Job
    for (const auto& r : Simulate(seed, With::kFaults, Machines::kSpanned).history) {
      if (r["kind"] == "gang_begin") begun.insert(r["attempt"].get<int64_t>() + 1000000 * seed);
      if (r["kind"] == "rank_start" && !r["slots"].empty()) {
        int& ranks = most[r["job"]];
        shrunk += r["world_size"] < ranks;
        ranks = std::max(ranks, r["world_size"].get<int>());
      }
      if (r["kind"] != "job") continue;
      for (const auto& attempt : r["attempts"]) {
        if (attempt[3] == "WORKER_LOST") lost.insert(attempt[0].get<int64_t>() + 1000000 * seed);
      }
    }
  }
  int both = 0;
  for (const int64_t attempt : begun) both += lost.count(attempt) > 0;
  EXPECT_GT(begun.size(), 100u);
  EXPECT_GE(both, 5);
  EXPECT_GT(shrunk, 10);
}

// Each of these once broke the promise.
TEST(SimulationTest, HoldsInSeedsThatOnceFailed) {
  const std::map<Machines, std::vector<uint64_t>> failed = {
      {Machines::kAny,
       {1601, 4284, 500947, 501561, 505237, 700181, 902840, 3000166, 3000818, 4001001}},
      {Machines::kFleet, {660000000432, 660000000474, 887692784114, 887692788870}},
      {Machines::kLimited, {887692782939, 887692784162}},
  };
  for (const auto& [machines, seeds] : failed) {
    for (const uint64_t seed : seeds) {
      for (const With faults : {With::kFaults, With::kNoFaults}) {
        for (const std::string& violation : JudgeSeed(seed, faults, machines).violations) {
          ADD_FAILURE() << "seed " << seed << ": " << violation;
        }
      }
    }
  }
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
  for (const char* kind :
       {"coordinator_end", "worker_end", "disk_full", "acked_fold", "published", "conflict_ack",
        "submit_ack", "short_epoch", "checkpoint_damaged", "power_lost", "fold_saved"}) {
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

// ---- the results folder

PublishedPrediction PublishOn(Disk& disk, World& world, absl::Duration until) {
  Publishing publishing;
  publishing.request.job = "job-a";
  publishing.cost = absl::Milliseconds(10);
  publishing.alive = [] { return true; };
  publishing.done = [](const absl::StatusOr<PublishedPrediction>&) {};
  disk.WriteFloor("job-a");
  disk.Publish(publishing);
  world.Run(world.now() + until);
  return disk.Standing("job-a").value_or(PublishedPrediction());
}

TEST(SimulatedDiskTest, ALossOfPowerUndoesWhatWasNotSynced) {
  int lost = 0, kept = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    World world(seed);
    Disk disk(&world);
    EXPECT_EQ(PublishOn(disk, world, absl::Seconds(1)).number, 1);
    EXPECT_EQ(PublishOn(disk, world, absl::Milliseconds(11)).number, 2);  // not synced yet
    disk.Write("file", "new");
    disk.Write("synced", "new");
    disk.Sync("synced");
    disk.LosePower();
    EXPECT_EQ(disk.Read("synced"), "new");
    const int standing = disk.Standing("job-a")->number;
    (standing == 1 ? lost : kept) += 1;
    (disk.Read("file") ? kept : lost) += 1;
  }
  EXPECT_GT(lost, 5);
  EXPECT_GT(kept, 5);
}

TEST(SimulatedDiskTest, WhatIsPublishedForAJobThatIsOverIsTakenBack) {
  World world(1);
  Disk disk(&world);
  PublishOn(disk, world, absl::Seconds(1));
  PublishOn(disk, world, absl::Seconds(1));
  disk.EndPublishing("job-a", 1, [] { return true; });
  EXPECT_EQ(disk.Standing("job-a")->number, 1);
  EXPECT_EQ(PublishOn(disk, world, absl::Seconds(1)).number, 1);
}

// ---- the checker notices what is wrong with a history ----

// A history without violations in which a Job ended with an answer of several folds.
History WholeHistory() {
  for (uint64_t seed = 1; seed < 100; ++seed) {
    History history = Simulate(seed, With::kNoFaults).history;
    for (const auto& r : history) {
      const bool whole = r["kind"] == "job" && r["state"] == "SUCCEEDED" && r["quality"] == 3 &&
                         r["deadline"] >= 0 && r["members"].size() >= 2;
      if (whole && CheckHistory(history).empty()) return history;
    }
  }
  ADD_FAILURE() << "no seed has a Job whose folds all answer";
  return {};
}

// The record of how the Job that answers FULL ended.
nlohmann::json& EndOf(History& history) {
  const auto end = std::find_if(history.rbegin(), history.rend(), [](const auto& r) {
    return r["kind"] == "job" && r["state"] == "SUCCEEDED" && r["quality"] == 3 &&
           r["members"].size() >= 2;
  });
  return *end;
}

struct Damage {
  const char* name;
  const char* told;  // in a violation
  void (*damage)(History& history, nlohmann::json& end);
};

void DropJob(History& history, const nlohmann::json& end) {
  const std::string id = end["job"];
  const auto of_job = [&id](const auto& r) { return r["kind"] == "job" && r["job"] == id; };
  history.erase(std::remove_if(history.begin(), history.end(), of_job), history.end());
}

constexpr int64_t kMinute = 60'000'000;

nlohmann::json& FirstFoldStart(History& history) {
  return *std::find_if(history.begin(), history.end(), [](const auto& r) {
    return r["kind"] == "rank_start" && !r["slots"].empty();
  });
}

const Damage kDamages[] = {
    {"LostJob", "was acknowledged before it was stored",
     [](History& history, nlohmann::json& end) { DropJob(history, end); }},
    {"LateEnd", "finished after its deadline",
     [](History&, nlohmann::json& end) {
       end["finished"] = end["deadline"].get<int64_t>() + kMinute;
     }},
    {"MovedDeadline", "its deadline moved",
     [](History&, nlohmann::json& end) {
       end["deadline"] = end["deadline"].get<int64_t>() + kMinute;
     }},
    {"LiveAttempt", "ended with a live attempt",
     [](History&, nlohmann::json& end) { end["attempts"].back()[2] = true; }},
    {"FullWithoutAFold", "is FULL with",
     [](History&, nlohmann::json& end) { end["complete"] = end["spec_folds"].get<int>() - 1; }},
    {"StaleMember", "stand under attempt",
     [](History&, nlohmann::json& end) {
       end["tasks"][1][2] = end["tasks"][1][2].get<int64_t>() + 1;
     }},
    {"MoreEpochsThanTrained", "epochs of attempt",
     [](History&, nlohmann::json& end) { end["tasks"][1][6] = 1000; }},
    {"PredictionNotOnDisk", "names a prediction that is not on disk",
     [](History&, nlohmann::json& end) { end["number"] = 1000; }},
    {"EndWithoutReason", "ended without a reason",
     [](History&, nlohmann::json& end) { end["reason"] = "NONE"; }},
    {"SlotTwice", "two attempts at once on slot",
     [](History& history, nlohmann::json&) {
       nlohmann::json again = FirstFoldStart(history);
       again["attempt"] = 1'000'000;
       history.insert(history.end() - 1, again);
     }},
    {"NumberOfAnotherJob", "was given to job",
     [](History& history, nlohmann::json& end) {
       nlohmann::json other = end;
       other["job"] = "job-other";
       history.push_back(other);
     }},
    {"OtherCheckpoint", "began from the checkpoint",
     [](History& history, nlohmann::json&) { FirstFoldStart(history)["resume"] = "elsewhere"; }},
    {"OtherBatch", "was given batches of",
     [](History& history, nlohmann::json&) { FirstFoldStart(history)["batch"] = 7; }},
    {"AckBeforeCommit", "were acknowledged before they were stored",
     [](History& history, nlohmann::json&) {
       const auto saved = std::find_if(history.begin(), history.end(),
                                       [](const auto& r) { return r["kind"] == "acked_fold"; });
       nlohmann::json early = *saved;
       const auto begun = [&early](const auto& r) {
         return r["kind"] == "rank_start" && r["attempt"] == early["attempt"];
       };
       const auto start = std::find_if(history.begin(), history.end(), begun);
       history.insert(start + 1, early);
     }},
    {"UnusedTime", "of its time, and no decision says why",
     [](History& history, nlohmann::json& end) {
       for (auto& r : history) {
         if (r["kind"] != "truth" || r["request"] != end["request"]) continue;
         for (const char* excuse : {"fixed", "interrupted", "reuses"}) r[excuse] = false;
         r["alone"] = r["placeable"] = true;
         r["window_s"] = 1000;
         r["gangs"] = 1000;
       }
       end["spec_trials"] = 99;
       end["decisions"] = nlohmann::json::array();
     }},
    {"OtherPredictionStands", " stands",
     [](History& history, nlohmann::json& end) {
       for (auto& r : history) {
         if (r["kind"] == "standing" && r["job"] == end["job"]) r["number"] = 1000;
       }
     }},
    {"NotPublishedWhileTraindWasAway", "has not published it while traind was away",
     [](History& history, nlohmann::json& end) {
       const int64_t due =
           end["t"].get<int64_t>() + end["deadline"].get<int64_t>() - end["core"].get<int64_t>();
       end["t"] = due + kMinute;
       for (auto& r : history) {
         if (r["kind"] == "published") r["folds"] = nlohmann::json::array();
         if (r["kind"] == "fold_saved") r["t"] = due - kMinute;
       }
       const auto start = std::find_if(history.begin(), history.end(), [](const auto& r) {
         return r["kind"] == "coordinator_start";
       });
       const nlohmann::json away = {{"t", due - 2 * kMinute}, {"kind", "coordinator_end"}};
       history.insert(start + 1, away);
     }},
    {"CheckpointLost", "was told of and is lost",
     [](History& history, nlohmann::json&) {
       history.push_back({{"t", history.back()["t"]},
                          {"kind", "checkpoint_lost"},
                          {"attempt", 1},
                          {"manifest", "checkpoint-1.json"}});
     }},
    {"NeverAcknowledged", "was never acknowledged",
     [](History& history, nlohmann::json&) {
       history.push_back({{"t", history.back()["t"]},
                          {"kind", "unacknowledged"},
                          {"attempt", 1},
                          {"sequence", 1}});
     }},
};

class CheckerTest : public testing::TestWithParam<Damage> {};

TEST_P(CheckerTest, NoticesIt) {
  History history = WholeHistory();
  ASSERT_FALSE(history.empty());
  GetParam().damage(history, EndOf(history));
  const auto violations = CheckHistory(history);
  EXPECT_TRUE(std::any_of(violations.begin(), violations.end(), [](const std::string& line) {
    return absl::StrContains(line, GetParam().told);
  })) << testing::PrintToString(violations);
}

INSTANTIATE_TEST_SUITE_P(All, CheckerTest, testing::ValuesIn(kDamages),
                         [](const auto& info) { return info.param.name; });

TEST(CheckQualityTest, NoticesALossThatNoDecisionStates) {
  History history = WholeHistory();
  const History calm = history;
  EXPECT_TRUE(CheckQuality(history, calm).empty());
  nlohmann::json& end = EndOf(history);
  for (auto& r : history) {
    if (r["kind"] == "truth" && r["request"] == end["request"]) r["interrupted"] = false;
    if (r["kind"] == "truth" && r["request"] == end["request"]) r["reuses"] = false;
  }
  end["quality"] = 2;
  end["decisions"] = nlohmann::json::array();
  end["deadline"] = end["finished"];
  ASSERT_EQ(CheckQuality(history, calm).size(), 1u);
  end["decisions"] = {{"retry", "its Rank died", "attempt 2", "start again", 0, false}};
  EXPECT_TRUE(CheckQuality(history, calm).empty());
  // There was time enough for all of it.
  end["deadline"] = end["finished"].get<int64_t>() + 100 * kMinute;
  end["accepted"] = end["finished"].get<int64_t>() - 300 * kMinute;
  EXPECT_EQ(CheckQuality(history, calm).size(), 1u);
  // Under the fixed policy training was over by then.
  for (auto& r : history) {
    if (r["kind"] == "truth" && r["request"] == end["request"]) r["fixed"] = true;
  }
  EXPECT_TRUE(CheckQuality(history, calm).empty());
}

}  // namespace
}  // namespace traind::simulation
