// Reads the history of a run and says what of the promise was broken. Knows nothing
// of the core: only what was recorded of commits, answers, Ranks and the disk.
// Threads: safe, pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace traind::simulation {

// Each violation is one line; none: the promise was kept.
std::vector<std::string> CheckHistory(const std::vector<nlohmann::json>& history);

// Share of min(end, deadline) - acceptance in which a Job alone on its machine was
// read, trained, predicted or published, over the Jobs of a run without faults that
// had more than 30 s; negative: there was none.
double ProductiveRatio(const std::vector<nlohmann::json>& history);

}  // namespace traind::simulation
