// The better floor: logistic or ridge regression on every fold.
#pragma once

#include <absl/time/time.h>
#include <absl/types/span.h>

#include <cstdint>
#include <optional>

#include "common/base/clock.h"
#include "common/data/table/table.h"
#include "common/metrics/metrics.h"
#include "common/publish/floor_files.h"
#include "worker/prepare/prior_floor.h"

namespace traind {

struct LinearFloorOptions {
  absl::Duration time;  // for all of it
  uint64_t seed = 0;    // of the rows that each fold is fitted on
  // Of all weights but the biases, on standardised numbers; the loss is summed over rows.
  double l2 = 1;
  int64_t rows_per_fold = 8000;  // sampled; fewer where rows are wide
};

// One model per fold, fitted on a sample of the rows that the fold is trained on: numbers
// standardised by those rows, a missing one as their mean and a switch, each
// category a switch (in 256 buckets where there are more). Out-of-fold values
// come from the fold's own model, the test rows' from the mean of all.
// None where the time does not suffice, or the model would be too large.
std::optional<Floor> LinearFloor(const Table& table, const FloorFolds& folds, Metric metric,
                                 const LinearFloorOptions& options, const Clock& clock);

}  // namespace traind
