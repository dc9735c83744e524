// The columns of a fold's validation rows, one of which may be shuffled.
#pragma once

#include <memory>

#include "common/metrics/metrics.h"
#include "worker/learner/learner.h"
#include "worker/task/column_drops.h"
#include "worker/train/fold_data.h"

namespace traind {

// Whether samples are single rows of numbers and categories.
bool HasPlainRows(const FoldData& data);

// Scores by the best weights. References outlive it. REQUIRES: HasPlainRows(data).
std::unique_ptr<ColumnScorer> NewNetworkColumnScorer(const FoldData& data, Learner& learner,
                                                     Metric metric, Smearing smearing);

}  // namespace traind
