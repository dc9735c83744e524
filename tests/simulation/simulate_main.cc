// simulate [--machines any|spanned|fleet|limited|asked] [--seeds N] [--first S] [--seed S]
// [--history FILE] [--stop_at_first 1] [--faults 0]
// Runs seeds and prints one JSON summary line; each violation on a line of its own before it. Exits
// 1 if there was one. --stop_at_first 1: after the first seed with one. --faults 0: the same Jobs,
// and nothing goes wrong.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "tests/simulation/judged_seed.h"

namespace traind::simulation {
namespace {

void AddRevisions(const Outcome& outcome, std::vector<int>& revisions) {
  std::map<std::string, int> by_job;  // of the last record
  for (const nlohmann::json& record : outcome.history) {
    if (record["kind"] == "job") by_job[record["job"]] = record["revisions"];
  }
  for (const auto& [job, plans] : by_job) revisions.push_back(std::max(0, plans - 1));
}

}  // namespace
}  // namespace traind::simulation

int main(int argc, char** argv) {
  using namespace traind::simulation;
  uint64_t first = 1, seeds = 1000;
  bool stop_at_first = false;
  With with = With::kFaults;
  Machines machines = Machines::kAny;
  std::string history_file;
  for (int i = 1; i < argc; i += 2) {
    const std::string key = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (value.empty()) {
      std::cerr << "simulate: " << key
                << " is no option, or lacks its value; they stand at the top of " << __FILE__
                << "\n";
      return 2;
    }
    if (key == "--seeds") {
      seeds = std::strtoull(value.c_str(), nullptr, 10);
    } else if (key == "--first") {
      first = std::strtoull(value.c_str(), nullptr, 10);
    } else if (key == "--seed") {
      first = std::strtoull(value.c_str(), nullptr, 10);
      seeds = 1;
    } else if (key == "--history") {
      history_file = value;
    } else if (key == "--machines" && value == "any") {
      machines = Machines::kAny;
    } else if (key == "--machines" && value == "spanned") {
      machines = Machines::kSpanned;
    } else if (key == "--machines" && value == "fleet") {
      machines = Machines::kFleet;
    } else if (key == "--machines" && value == "limited") {
      machines = Machines::kLimited;
    } else if (key == "--machines" && value == "asked") {
      machines = Machines::kAsked;
    } else if (key == "--faults") {
      with = value == "0" ? With::kNoFaults : With::kFaults;
    } else if (key == "--stop_at_first") {
      stop_at_first = value == "1";
    } else {
      std::cerr << "simulate: unknown " << key << " " << value << "\n";
      return 2;
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  uint64_t broken = 0, violations = 0, jobs = 0, measured = 0;
  int64_t turns = 0;
  double productive = 0;
  Counts counts;
  std::vector<int> revisions;  // of each Job's Plan, the first one not counted
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    const auto [outcome, found] = JudgeSeed(seed, with, machines, &counts);
    if (!history_file.empty()) {
      std::ofstream out(history_file, seed == first ? std::ios::trunc : std::ios::app);
      for (const auto& record : outcome.history) out << record.dump() << "\n";
    }
    jobs += static_cast<uint64_t>(outcome.jobs);
    turns += outcome.turns;
    AddRevisions(outcome, revisions);
    for (const std::string& violation : found) {
      std::cout << "seed " << seed << ": " << violation << "\n";
    }
    broken += found.empty() ? 0 : 1;
    violations += found.size();
    const double ratio = ProductiveRatio(outcome.history);
    if (ratio >= 0) {
      productive += ratio;
      ++measured;
    }
    if (stop_at_first && broken > 0) {
      seeds = seed - first + 1;
      break;
    }
  }
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  nlohmann::json summary = {{"seeds", seeds},
                            {"jobs", jobs},
                            {"turns", turns},
                            {"violations", violations},
                            {"seeds_with_violations", broken},
                            {"productive_seeds", measured},
                            {"wall_s", wall}};
  summary["counts"] = counts;
  summary["productive_ratio"] =
      measured > 0 ? nlohmann::json(productive / static_cast<double>(measured)) : nullptr;
  if (!revisions.empty()) {
    std::sort(revisions.begin(), revisions.end());
    summary["revisions_median"] = revisions[revisions.size() / 2];
    summary["revisions_p90"] = revisions[revisions.size() * 9 / 10];
    summary["revisions_most"] = revisions.back();
  }
  std::cout << summary.dump() << std::endl;
  return violations == 0 ? 0 : 1;
}
