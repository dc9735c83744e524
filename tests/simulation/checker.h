// Reads the history of a run and says what of the promise was broken. Knows nothing
// of the core: only what was recorded of commits, answers, Ranks and the disk.
// Threads: safe, pure.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace traind::simulation {

// How often what a rule is about has happened, by a few words for it.
using Counts = std::map<std::string, int64_t>;

// Each violation is one line; none: the promise was kept. Adds to `counts` unless it is null.
std::vector<std::string> CheckHistory(const std::vector<nlohmann::json>& history,
                                      Counts* counts = nullptr);

// Compares a run with the same run without faults: a Job that ended with less quality must
// say why in a Decision, and one that would still have had time for all of it three times must
// have given up a fold. Each violation is one line.
std::vector<std::string> CheckQuality(const std::vector<nlohmann::json>& history,
                                      const std::vector<nlohmann::json>& without_faults);

// Share of min(end, deadline) - acceptance in which a Job alone on its machine was
// read, trained, predicted or published, over the Jobs of a run without faults that
// had more than 30 s; negative: there was none.
double ProductiveRatio(const std::vector<nlohmann::json>& history);

}  // namespace traind::simulation
