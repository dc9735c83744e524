// Floors of a forecast, which use a series' own past.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/data/table/table.h"
#include "common/metrics/metrics.h"
#include "common/publish/floor_files.h"
#include "worker/floor/lag_models.h"
#include "worker/prepare/linear_floor.h"
#include "worker/prepare/prior_floor.h"

namespace traind {

// A floor, and the length of the season that it found.
struct SeasonalFloor {
  Floor floor;
  int64_t period = 1;
  // For models that weigh a season against the last values: as above, or where that is 1 the one
  // that the series' differences have.
  int64_t season = 1;
};

// Predicts for each row the last known value (StepsAhead) that is a whole number of seasons before
// it. The length of the season is one of a few (a day of hours, a week,
// a year, ..., or 1: no season): the one with the best out-of-fold score. Returns nothing if the
// horizon is 0.
std::optional<SeasonalFloor> SeasonalNaiveFloor(const Table& table, const FloorFolds& folds,
                                                Metric metric);

struct LagFloorResult {
  Floor floor;
  std::vector<LagModels::State> folds;  // what each fold's models were fitted to
};

// Ridge regression on the last known values of the targets, on those a season (`period`)
// earlier, and on the numbers of the last known row: one model per fold, fitted on the rows
// that the fold trains on. Returns nothing if time does not suffice.
std::optional<LagFloorResult> LagFloor(const Table& table, const FloorFolds& folds, Metric metric,
                                       int64_t period, const LinearFloorOptions& options,
                                       const Clock& clock);

}  // namespace traind
