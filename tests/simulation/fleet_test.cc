// The promise on fleets: racks, labels, GPUs and classes. 1,000 seeds, or as many as
// $SIMULATION_SEEDS says. One seed again:
//   bazel run //tests/simulation:simulate -- --machines fleet --seed N --history /tmp/history.jsonl
#include "tests/simulation/fleet.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/checker.h"
#include "tests/simulation/judged_seed.h"
#include "tests/simulation/simulation.h"

namespace traind::simulation {
namespace {

using nlohmann::json;

uint64_t Seeds() {
  const char* const text = std::getenv("SIMULATION_SEEDS");
  uint64_t seeds = 1000;
  if (text != nullptr) {
    EXPECT_TRUE(absl::SimpleAtoi(text, &seeds)) << text;
  }
  return seeds;
}

History Calm(uint64_t seed) { return Simulate(seed, With::kNoFaults, Machines::kFleet).history; }

// Each part has every fourth seed, so that parts may run side by side.
constexpr uint64_t kParts = 4;
class FleetPromiseTest : public testing::TestWithParam<uint64_t> {};

TEST_P(FleetPromiseTest, HoldsInEverySeed) {
  int broken = 0;
  for (uint64_t i = 0; i < Seeds() / kParts; ++i) {
    const uint64_t seed = 1 + GetParam() + i * kParts;
    const auto violations = JudgeSeed(seed, With::kFaults, Machines::kFleet).violations;
    for (const std::string& violation : violations) {
      ADD_FAILURE() << "seed " << seed << ": " << violation;
    }
    broken += !violations.empty();
    ASSERT_LT(broken, 5) << "and more";
  }
}

INSTANTIATE_TEST_SUITE_P(Quarter, FleetPromiseTest, testing::Range(uint64_t{0}, kParts));

// Without these the seeds above would prove little.
TEST(FleetTest, WhatTheRulesAreAboutHappens) {
  Counts counts;
  for (uint64_t seed = 1; seed <= 100; ++seed) CheckHistory(Calm(seed), &counts);
  EXPECT_GT(counts["folds_with_demands"], 500);
  EXPECT_GT(counts["gangs_in_one_rack"], 20);
  EXPECT_GT(counts["gangs_over_racks"], 10);
  EXPECT_GT(counts["jobs_that_nobody_suits"], 10);
  EXPECT_GT(counts["smaller_gangs"], 10);
  EXPECT_GT(counts["waits"], 100);
  EXPECT_GT(counts["preempted"], 50);
  EXPECT_GT(counts["preempted_and_back"], 20);
  EXPECT_GT(counts["preempted_and_killed"], 0);
}

TEST(FleetTest, TheSameSeedGivesTheSameHistory) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    EXPECT_EQ(HashOf(Calm(seed)), HashOf(Calm(seed))) << "seed " << seed;
  }
}

// ---- the checker notices what is wrong with a history

json* Find(History& history, const std::function<bool(const json&)>& is) {
  const auto found = std::find_if(history.begin(), history.end(), is);
  return found == history.end() ? nullptr : &*found;
}

json& MachineOf(History& history, const json& worker) {
  return *Find(history,
               [&](const json& r) { return r["kind"] == "machine" && r["worker"] == worker; });
}

json& TruthOf(History& history, const std::string& job) {
  return *Find(history, [&](const json& r) {
    return r["kind"] == "truth" && "job-" + r["request"].get<std::string>() == job;
  });
}

// Ranks of a Job for which `asks` holds.
json* StartOf(History& history, const std::function<bool(const json& asks)>& asks) {
  return Find(history, [&](const json& r) {
    return r["kind"] == "rank_start" && !r["slots"].empty() &&
           asks(TruthOf(history, r["job"])["asks"]);
  });
}

bool AsksForNothing(const json& asks) {
  return asks["labels"].empty() && asks["device"] == "" && asks["gpu"] == "" && asks["gpu_gb"] == 0;
}

// A gang with at least so many parts, of a Job that asks for slots alone: its [attempt, job,
// parts].
json* GangOf(History& history, size_t parts) {
  for (json& r : history) {
    if (r["kind"] != "placements") continue;
    for (json& placed : r["all"]) {
      if (placed[2].size() >= parts && AsksForNothing(TruthOf(history, placed[1])["asks"])) {
        return &placed;
      }
    }
  }
  return nullptr;
}

size_t SlotsOf(const json& parts) {
  size_t slots = 0;
  for (const json& part : parts) slots += part[1].size();
  return slots;
}

// Machines that nobody uses, like another one, which stand at the front of the history.
void AddMachines(History& history, const json& like, int count, size_t slots, const char* label) {
  for (int i = 0; i < count; ++i) {
    json machine = MachineOf(history, like);
    const json slot = machine["slots"][0];
    machine["worker"] = "idle-" + std::to_string(i);
    machine["slots"] = std::vector<json>(slots, slot);
    machine["labels"] = {label};
    machine["reachable"] = true;
    history.insert(history.begin(), machine);
  }
}

struct Damage {
  const char* name;
  const char* told;                  // in a violation
  bool (*damage)(History& history);  // false: there is nothing in it to damage
};

const Damage kDamages[] = {
    {"LabelThatItsWorkerLacks", "which lacks the label ",
     [](History& history) {
       json* start = StartOf(history, [](const json& asks) { return !asks["labels"].empty(); });
       if (start == nullptr) return false;
       MachineOf(history, (*start)["worker"])["labels"] = json::array();
       return true;
     }},
    {"AnotherGpu", "is not what it asks for",
     [](History& history) {
       json* start = StartOf(history, [](const json& asks) { return asks["gpu"] != ""; });
       if (start == nullptr) return false;
       for (json& slot : MachineOf(history, (*start)["worker"])["slots"]) slot[0] = {"other"};
       return true;
     }},
    {"SmallerGpu", "is not what it asks for",
     [](History& history) {
       json* start = StartOf(history, [](const json& asks) { return asks["gpu_gb"] > 0; });
       if (start == nullptr) return false;
       for (json& slot : MachineOf(history, (*start)["worker"])["slots"]) slot[1] = 1;
       return true;
     }},
    {"SlotTwiceInAGang", " twice",
     [](History& history) {
       json* start = StartOf(history, [](const json&) { return true; });
       if (start == nullptr) return false;
       (*start)["slots"].push_back((*start)["slots"][0]);
       return true;
     }},
    {"GangBesideAWorkerThatHoldsIt", "has slots enough",
     [](History& history) {
       json* gang = GangOf(history, 2);
       if (gang == nullptr) return false;
       AddMachines(history, (*gang)[2][0][0], 1, SlotsOf((*gang)[2]), "rack=r");
       return true;
     }},
    {"GangOverRacks", "lies in several racks",
     [](History& history) {
       json* gang = GangOf(history, 2);
       if (gang == nullptr) return false;
       const json parts = (*gang)[2];
       MachineOf(history, parts[0][0])["labels"] = {"rack=p"};
       MachineOf(history, parts[1][0])["labels"] = {"rack=q"};
       AddMachines(history, parts[0][0], 2, SlotsOf(parts) - 1, "rack=r");
       return true;
     }},
    {"GangOnTooManyWorkers", " Workers, and 2 had room",
     [](History& history) {
       json* gang = GangOf(history, 3);
       if (gang == nullptr) return false;
       const json parts = (*gang)[2];
       for (const json& part : parts) MachineOf(history, part[0])["labels"] = {"rack=p"};
       AddMachines(history, parts[0][0], 2, SlotsOf(parts) - 1, "rack=r");
       return true;
     }},
    {"SmallerGangBesideWholeOnes", " of 9 slots",
     [](History& history) {
       json* gang = GangOf(history, 2);
       if (gang == nullptr) return false;
       const json job = (*gang)[1];
       for (json& r : history) {
         if (r["kind"] == "job" && r["job"] == job) r["wants"] = 9;
       }
       return true;
     }},
    {"GangThatCannotMeet", "spans Workers, and nobody reaches ",
     [](History& history) {
       json* gang = GangOf(history, 2);
       if (gang == nullptr) return false;
       MachineOf(history, (*gang)[2][1][0])["reachable"] = false;
       return true;
     }},
    {"GangOfSeveralDevices", "has slots of several devices",
     [](History& history) {
       json* gang = GangOf(history, 2);
       if (gang == nullptr) return false;
       MachineOf(history, (*gang)[2][1][0])["device"] = "other";
       return true;
     }},
    {"NotToldWhatIsMissing", "was not told that ",
     [](History& history) {
       bool any = false;
       for (json& r : history) {
         if (r["kind"] != "told") continue;
         r["text"] = "1 slot; 0 free";
         any = true;
       }
       return any;
     }},
    {"ToldThoughAWorkerSuits", "was told that no Worker suits: ",
     [](History& history) {
       const auto end = std::find_if(history.rbegin(), history.rend(), [&](const json& r) {
         return r["kind"] == "job" && TruthOf(history, r["job"])["placeable"] == true;
       });
       if (end == history.rend()) return false;
       history.push_back({{"t", history.back()["t"]},
                          {"kind", "told"},
                          {"job", (*end)["job"]},
                          {"unmatched", true},
                          {"text", "no Worker has label rack=z"}});
       return true;
     }},
    {"AnswerOfFoldsWhereNobodySuits", "which no Worker suits, ended with the quality 2",
     [](History& history) {
       json* end = Find(history, [&](const json& r) {
         if (r["kind"] != "job" || r["reason"] != "NO_WORKER" || r["has_test"] == false)
           return false;
         const json truth = TruthOf(history, r["job"]);
         return truth["placeable"] == false && truth["too_large"] == false;
       });
       if (end == nullptr) return false;
       (*end)["quality"] = 2;
       return true;
     }},
    {"WaitsBesideIdleSlots", " beside idle slots that suit",
     [](History& history) {
       if (GangOf(history, 2) != nullptr) return false;
       json* start = StartOf(history, AsksForNothing);
       if (start == nullptr) return false;
       AddMachines(history, (*start)["worker"], 1, 8, "rack=r");
       return true;
     }},
};

// Of the first fold that is told to make room: the attempt, its Job, and the one for which it goes.
struct MakesRoom {
  explicit MakesRoom(History& history) {
    json* told = Find(history, [](const json& r) { return r["kind"] == "preempt_told"; });
    if (told == nullptr) return;
    attempt = (*told)["attempt"];
    by = (*told)["by"];
    for (const json& r : history) {
      if (r["kind"] != "placements") continue;
      for (const json& placed : r["all"]) {
        if (placed[0] != attempt) continue;
        job = placed[1];
        worker = placed[2][0][0];
      }
    }
  }
  bool any() const { return attempt > 0; }

  int64_t attempt = 0;
  std::string job, by, worker;
};

void ForRows(History& history, const std::string& job, const std::function<void(json&)>& change) {
  for (json& r : history) {
    if (r["kind"] == "job" && r["job"] == job) change(r);
  }
}

void ForgetPreemptions(History& history, const std::string& job) {
  ForRows(history, job, [](json& r) {
    for (json& d : r["decisions"]) {
      if (d[0] == "preempt") d[0] = "other";
    }
  });
}

json& SeedOf(History& history) {
  return *Find(history, [](const json& r) { return r["kind"] == "seed"; });
}

const Damage kPreemptions[] = {
    {"ForAnEqualClass", ", whose priority is no higher",
     [](History& history) {
       const MakesRoom fold(history);
       ForRows(history, fold.by, [](json& r) { r["priority"] = -100; });
       return fold.any();
     }},
    {"WithoutADecisionOfTheOneThatTakes", ", which has decided nothing about it",
     [](History& history) {
       const MakesRoom fold(history);
       ForgetPreemptions(history, fold.by);
       return fold.any();
     }},
    {"WithoutADecisionOfTheOneThatGoes", ": no decision tells that fold ",
     [](History& history) {
       const MakesRoom fold(history);
       ForgetPreemptions(history, fold.job);
       return fold.any();
     }},
    {"ForOneThatTrains", ", which trains already",
     [](History& history) {
       const MakesRoom fold(history);
       ForRows(history, fold.by, [](json& r) { r["tasks"][1][0] = "RUNNING"; });
       return fold.any();
     }},
    {"ForOneThatItsSlotsDoNotSuit", ", which its slots do not suit",
     [](History& history) {
       const MakesRoom fold(history);
       if (fold.any()) TruthOf(history, fold.by)["asks"]["labels"] = {"rack=none"};
       return fold.any();
     }},
    {"TooSoonAfterItsStart", " makes room after only ",
     [](History& history) {
       SeedOf(history)["preempt_least_run"] = int64_t{1} << 50;
       return MakesRoom(history).any();
     }},
    {"WithoutAWord", " has made room and was never told to go",
     [](History& history) {
       const bool any = MakesRoom(history).any();
       for (json& r : history) {
         if (r["kind"] == "preempt_told") r["kind"] = "other";
       }
       return any;
     }},
    {"AfterTheGrace", " us after it was told to, and had ",
     [](History& history) {
       const bool any = MakesRoom(history).any();
       for (json& r : history) {
         if (r["kind"] == "preempt_told") r["t"] = r["t"].get<int64_t>() - 60'000'000;
       }
       return any;
     }},
    {"WithoutACheckpoint", ", and its fold made room with ",
     [](History& history) {
       bool told = false;
       for (json& r : history) {
         told |= r["kind"] == "preempt_told";
         if (told && r["kind"] == "rank_epochs") r["epochs"] = 0;
       }
       return told;
     }},
    {"AndWaitsBesideIdleSlots", ", which has made room, waits at ",
     [](History& history) {
       const MakesRoom fold(history);
       // Slots may be kept for gangs.
       const bool gangs = Find(history, [](const json& r) {
                            return r["kind"] == "job" && r["wants"] > 1;
                          }) != nullptr;
       if (!fold.any() || gangs || !AsksForNothing(TruthOf(history, fold.job)["asks"]))
         return false;
       AddMachines(history, fold.worker, 1, 8, "rack=r");
       return true;
     }},
};

class FleetCheckerTest : public testing::TestWithParam<Damage> {};

// In one of the first histories to which it can be done.
TEST_P(FleetCheckerTest, NoticesIt) {
  int damaged = 0;
  for (uint64_t seed = 1; seed <= 300 && damaged < 40; ++seed) {
    History history = Calm(seed);
    if (!GetParam().damage(history)) continue;
    ++damaged;
    for (const std::string& line : CheckHistory(history)) {
      if (absl::StrContains(line, GetParam().told)) return;
    }
  }
  ADD_FAILURE() << "not noticed in " << damaged << " histories";
}

INSTANTIATE_TEST_SUITE_P(Places, FleetCheckerTest, testing::ValuesIn(kDamages),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Preemption, FleetCheckerTest, testing::ValuesIn(kPreemptions),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace traind::simulation
