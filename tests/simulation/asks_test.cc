// The promise to those who ask Jobs that exist for later predictions and for rows at once, while
// what is no longer needed is deleted: 400 seeds, or as many as $SIMULATION_SEEDS says. One again:
//   bazel run //tests/simulation:simulate -- --machines asked --seed N --history /tmp/history.jsonl
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>

#include "tests/simulation/checker.h"
#include "tests/simulation/judged_seed.h"

namespace traind::simulation {
namespace {

using nlohmann::json;

uint64_t Seeds() {
  const char* const text = std::getenv("SIMULATION_SEEDS");
  uint64_t seeds = 400;
  if (text != nullptr) {
    EXPECT_TRUE(absl::SimpleAtoi(text, &seeds)) << text;
  }
  return seeds;
}

// Each part has every fourth seed, so that parts may run side by side.
constexpr uint64_t kParts = 4;
class AskedPromiseTest : public testing::TestWithParam<uint64_t> {};

TEST_P(AskedPromiseTest, HoldsInEverySeed) {
  Counts counts;
  int broken = 0;
  const uint64_t seeds = Seeds() / kParts;
  for (uint64_t i = 0; i < seeds; ++i) {
    const uint64_t seed = 1 + GetParam() + i * kParts;
    for (const std::string& violation :
         JudgeSeed(seed, With::kFaults, Machines::kAsked, &counts).violations) {
      ADD_FAILURE() << "seed " << seed << ": " << violation;
      ++broken;
    }
    ASSERT_LT(broken, 5) << "and more";
  }
  // A simulation in which little happens proves little.
  const auto most = static_cast<int64_t>(seeds);
  EXPECT_GT(counts["predictions_SUCCEEDED"], 2 * most);
  EXPECT_GT(counts["predictions_FAILED"], most / 10);
  EXPECT_GT(counts["predictions_that_fit"], most / 2);
  EXPECT_GT(counts["rows_OK"], 4 * most);
  EXPECT_GT(counts["servers_SUCCEEDED"], most);
  EXPECT_GT(counts["deleted_jobs"], most);
  EXPECT_GT(counts["predicting_at_the_limit"], most / 20);
}

INSTANTIATE_TEST_SUITE_P(Quarter, AskedPromiseTest, testing::Range(uint64_t{0}, kParts));

TEST(AsksTest, TheSameSeedGivesTheSameHistory) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const auto hash = [seed] {
      return HashOf(Simulate(seed, With::kFaults, Machines::kAsked).history);
    };
    EXPECT_EQ(hash(), hash()) << "seed " << seed;
  }
}

// ---- the checker notices what is wrong with a history

struct Damage {
  const char* name;
  const char* told;                  // in a violation
  bool (*damage)(History& history);  // false: it cannot be done to this one
};

json* Last(History& history, const std::function<bool(const json&)>& is) {
  const auto found = std::find_if(history.rbegin(), history.rend(), is);
  return found == history.rend() ? nullptr : &*found;
}

// The end of a Job that has predicted a file.
json* EndOfPrediction(History& history) {
  return Last(history, [](const json& r) {
    return r["kind"] == "job" && r["models_from"] != "" && r["state"] == "SUCCEEDED" &&
           r["number"] > 0;
  });
}

// Another record of the kind after its last one.
bool Repeat(History& history, const char* kind) {
  for (size_t i = history.size(); i-- > 0;) {
    if (history[i]["kind"] != kind) continue;
    const json again = history[i];
    history.insert(history.begin() + static_cast<int64_t>(i) + 1, again);
    return true;
  }
  return false;
}

bool Drop(History& history, const char* kind) {
  json* const last = Last(history, [kind](const json& r) { return r["kind"] == kind; });
  if (last == nullptr) return false;
  (*last)["kind"] = "nothing";
  return true;
}

const Damage kDamages[] = {
    {"PredictionTakesASlot", "takes slots",
     [](History& history) {
       json* const end = EndOfPrediction(history);
       if (end == nullptr) return false;
       (*end)["attempts"].back()[6] = 1;
       return true;
     }},
    {"SucceededWithoutAnAnswer", "SUCCEEDED without a prediction",
     [](History& history) {
       json* const end = EndOfPrediction(history);
       if (end == nullptr) return false;
       (*end)["number"] = 0;
       return true;
     }},
    {"FailedWithAnAnswer", "FAILED though a prediction stands",
     [](History& history) {
       json* const end = EndOfPrediction(history);
       if (end == nullptr) return false;
       (*end)["state"] = "FAILED";
       return true;
     }},
    {"OtherContent", "is not what was published",
     [](History& history) {
       json* const end = EndOfPrediction(history);
       if (end == nullptr) return false;
       (*end)["content"] = "another one";
       return true;
     }},
    {"PublishedTwice", "was published twice",
     [](History& history) {
       json* const last = Last(history, [](const json& r) {
         return r["kind"] == "published" && r["content"] != "" && r["number"] == 1;
       });
       if (last == nullptr) return false;
       json again = *last;
       again["content"] = "another one";
       history.push_back(again);
       return true;
     }},
    {"Lost", "was acknowledged before it was stored",
     [](History& history) {
       const json* const end = EndOfPrediction(history);
       if (end == nullptr) return false;
       const std::string id = (*end)["job"];
       for (json& r : history) {
         if (r["kind"] == "job" && r["job"] == id) r["kind"] = "nothing";
       }
       return true;
     }},
    {"NeverOver", "is still RUNNING",
     [](History& history) {
       const json* const end = Last(history, [](const json& r) {
         return r["kind"] == "job" && r["models_from"] != "" && r["state"] == "SUCCEEDED" &&
                r["deadline"] < 0;
       });
       if (end == nullptr) return false;
       const std::string id = (*end)["job"];
       for (json& r : history) {
         if (r["kind"] != "job" || r["job"] != id || r["state"] != "SUCCEEDED") continue;
         r["kind"] = "nothing";
       }
       return true;
     }},
    {"TooManyPredict", "Ranks predict files on",
     [](History& history) {
       const json* const start = Last(history, [](const json& r) {
         return r["kind"] == "rank_start" && r["predicts"] == true;
       });
       if (start == nullptr) return false;
       const json begun = *start;
       for (int64_t more = 1; more <= 4; ++more) {
         history.push_back(begun);
         history.back()["attempt"] = 1'000'000 + more;
       }
       return true;
     }},
    {"SourceDeleted", "uses its models",
     [](History& history) {
       const auto begins = std::find_if(history.begin(), history.end(), [](const json& r) {
         return r["kind"] == "job" && r["models_from"] != "" && r["state"] == "RUNNING";
       });
       if (begins == history.end()) return false;
       const json deleted = {
           {"t", (*begins)["t"]}, {"kind", "deleted"}, {"job", (*begins)["models_from"]}};
       history.insert(begins + 1, deleted);
       return true;
     }},
    {"ModelsToGo", "and a job at work uses its models",
     [](History& history) {
       const auto begins = std::find_if(history.begin(), history.end(), [](const json& r) {
         return r["kind"] == "job" && r["models_from"] != "" && r["state"] == "RUNNING";
       });
       if (begins == history.end()) return false;
       const json gone = {{"t", (*begins)["t"]},
                          {"kind", "to_go"},
                          {"jobs", json::array()},
                          {"interim", {(*begins)["models_from"]}}};
       history.insert(begins + 1, gone);
       return true;
     }},
    {"RowsAnsweredTwice", " twice",
     [](History& history) { return Repeat(history, "rows_answered"); }},
    {"RowsNeverAnswered", "was never answered by",
     [](History& history) { return Drop(history, "rows_answered"); }},
    {"CallNeverEnds", "for rows never ended",
     [](History& history) { return Drop(history, "rows_end"); }},
    {"CallEndsTwice", "for rows was answered twice",
     [](History& history) { return Repeat(history, "rows_end"); }},
    {"RowsOfOtherModels", "were answered by the models of",
     [](History& history) {
       json* const end = Last(
           history, [](const json& r) { return r["kind"] == "rows_end" && r["status"] == "OK"; });
       if (end == nullptr) return false;
       (*end)["answered_by"] = "job-other";
       return true;
     }},
    {"RowsRefused", "were not answered without any fault",
     [](History& history) {
       json* const end = Last(
           history, [](const json& r) { return r["kind"] == "rows_end" && r["status"] == "OK"; });
       if (end == nullptr) return false;
       (*end)["status"] = "UNAVAILABLE";
       return true;
     }},
    {"ServerFailed", "serves and ended FAILED",
     [](History& history) {
       json* const end = Last(history, [](const json& r) {
         return r["kind"] == "job" && r["models_from"] != "" && r["state"] == "SUCCEEDED" &&
                r["number"] == 0;
       });
       if (end == nullptr) return false;
       (*end)["state"] = "FAILED";
       return true;
     }},
};

class AsksCheckerTest : public testing::TestWithParam<Damage> {};

// In one of the first histories to which it can be done.
TEST_P(AsksCheckerTest, NoticesIt) {
  int damaged = 0;
  for (uint64_t seed = 1; seed <= 100 && damaged < 20; ++seed) {
    History history = Simulate(seed, With::kNoFaults, Machines::kAsked).history;
    if (!GetParam().damage(history)) continue;
    ++damaged;
    for (const std::string& line : CheckHistory(history)) {
      if (absl::StrContains(line, GetParam().told)) return;
    }
  }
  ADD_FAILURE() << "not noticed in " << damaged << " histories";
}

INSTANTIATE_TEST_SUITE_P(All, AsksCheckerTest, testing::ValuesIn(kDamages),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace traind::simulation
