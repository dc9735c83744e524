// The columns of a fold's validation rows, one of which may be shuffled.
#pragma once

#include <cstdint>
#include <memory>

#include "common/metrics/metrics.h"
#include "worker/task/column_drops.h"
#include "worker/treefold/tree_fold.h"
#include "worker/trees/booster.h"

namespace traind {

// Scores by the first `rounds` rounds. References outlive it. REQUIRES: the task is no forecast.
std::unique_ptr<ColumnScorer> NewTreeColumnScorer(const TreeFold& fold, TreeModel& trees,
                                                  int64_t rounds, Metric metric, Smearing smearing);

}  // namespace traind
