// The first floor: what the target alone tells.
#pragma once

#include <absl/types/span.h>

#include <cstdint>

#include "common/data/table/folds.h"
#include "common/data/table/table.h"
#include "common/metrics/metrics.h"
#include "common/publish/floor_files.h"

namespace traind {

// The folds of a Job, as the floors need them.
struct FloorFolds {
  absl::Span<const int16_t> fold_of;  // [train_rows]; -1: validates no fold
  SplitSpec split;
};

// Class frequencies, or the targets' means. A row's out-of-fold value comes from
// the rows that its fold is trained on alone; that of the test rows, and of rows
// without a fold, from all.
Floor PriorFloor(const Table& table, const FloorFolds& folds, Metric metric);

// The floor's score out of fold, over all rows that have one.
double OofScore(const Table& table, const FloorFolds& folds, Metric metric,
                absl::Span<const float> oof);

// Values per row of a prediction: C of common/base/job_layout.h.
size_t PredictionColumns(const Table& table);

}  // namespace traind
