// The first floor, which uses the targets only.
#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "common/data/table/folds.h"
#include "common/data/table/table.h"
#include "common/metrics/metrics.h"
#include "common/publish/floor_files.h"

namespace traind {

// The folds of a Job in the form that the floors need.
struct FloorFolds {
  absl::Span<const int16_t> fold_of;  // [train_rows]; -1: the row is in no fold
  SplitSpec split;
};

// The level of the quantile of a target that the metric asks for, which is the median for mae;
// nothing: it asks for the mean, or for classes.
std::optional<double> WantedQuantile(Metric metric);

// The quantile of some values at a level within (0, 1); 0 if there are none.
float QuantileOf(std::vector<float> values, double level);

// Predicts class frequencies, or the targets' means; where the metric asks for a quantile, that
// quantile of each target. A row's out-of-fold value comes only from
// the rows that its fold trains on; that of the test rows, and of rows without
// a fold, from all rows.
Floor PriorFloor(const Table& table, const FloorFolds& folds, Metric metric);

// Returns the prior floor's answers for the test rows.
std::vector<float> PriorOfAllRows(const Table& table, const FloorFolds& folds, Metric metric);

// The out-of-fold score of a floor, over all rows that have one.
double OofScore(const Table& table, const FloorFolds& folds, Metric metric,
                absl::Span<const float> oof);

// Number of values per row of a prediction: C in common/base/job_layout.h.
size_t PredictionColumns(const Table& table);

}  // namespace traind
