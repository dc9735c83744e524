// How much each parameter of a search matters.
//
// Threads: safe, nothing is kept.
#pragma once

#include <optional>
#include <vector>

#include "common/search/range.h"
#include "server/search/tpe.h"

namespace traind {

// With fewer trials nothing is told.
inline constexpr size_t kLeastTrials = 8;

// For each parameter the share of the variance of the trials' ranks that it explains alone: epsilon
// squared of a one-way analysis of variance over its values, or over bins with equally many trials
// (Kelley 1935, on ranks as in Kruskal and Wallis 1952). Ranks, because a few very bad trials would
// hide the rest. Shares of parameters that act together do not add up to 1. Trials that run, failed
// or lack the parameter do not count; none: too few are left.
std::vector<std::optional<double>> Importances(const Space& space, const std::vector<Tried>& tried);

}  // namespace traind
