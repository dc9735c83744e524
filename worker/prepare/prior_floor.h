// The first floor: what the target alone tells.
#pragma once

#include <absl/types/span.h>

#include <cstdint>

#include "common/publish/floor_files.h"
#include "common/publish/metrics.h"
#include "common/table/table.h"

namespace traind {

// Class frequencies, or the target's mean. A row's out-of-fold value comes from
// the rows of the other folds alone; the test rows' value from all rows.
// `fold_of`: int16 [train_rows], 0..folds-1.
Floor PriorFloor(const Table& table, absl::Span<const int16_t> fold_of, int folds, Metric metric);

// The floor's score out of fold, over all rows.
double OofScore(const Table& table, Metric metric, absl::Span<const float> oof);

// Values per row of a prediction: C of common/job_layout.h.
size_t PredictionColumns(const Table& table);

}  // namespace traind
