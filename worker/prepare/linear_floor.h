// The better floor: logistic or ridge regression per fold.
#pragma once

#include <absl/time/time.h>
#include <absl/types/span.h>

#include <cstdint>
#include <optional>

#include "common/base/clock.h"
#include "common/data/table/table.h"
#include "common/metrics/metrics.h"
#include "common/publish/floor_files.h"
#include "worker/floor/floor_model.h"
#include "worker/prepare/prior_floor.h"

namespace traind {

struct LinearFloorOptions {
  absl::Duration time;  // for all folds together
  uint64_t seed = 0;    // for sampling the rows that each fold is fitted on
  // L2 penalty on all weights but the biases, with standardised inputs. The loss is summed over
  // rows. Of small tables without texts each fold tries others on parts of the rows that it trains
  // on, and takes the best.
  double l2 = 1;
  int64_t rows_per_fold = 8000;  // sampled; fewer if rows are wide
  bool texts = false;            // the table's text columns are free text
};

struct LinearFloorResult {
  Floor floor;
  FloorModel model;  // without its Job
};

// One model per fold, fitted on a sample of the rows that the fold trains on. Numbers are
// standardised by those rows; a missing number becomes their mean, with a 0/1 indicator. Each
// category is a 0/1 indicator (more than 256 categories share 256 buckets). Texts are words and
// pairs of adjacent words (TF-IDF); of many long texts only both ends of each are read. How much
// words count beside other columns is chosen on the rows of one fold. Where the metric asks for a
// quantile (WantedQuantile), values are moved to it. Out-of-fold values come from
// the fold's own model, values of test rows are the mean over all models.
// Returns nothing if time does not suffice, or the model would be too large.
std::optional<LinearFloorResult> LinearFloor(const Table& table, const FloorFolds& folds,
                                             Metric metric, const LinearFloorOptions& options,
                                             const Clock& clock);

}  // namespace traind
