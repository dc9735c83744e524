// Floors of a forecast: what a series' own past tells.
#pragma once

#include <optional>

#include "common/base/clock.h"
#include "common/data/table/table.h"
#include "common/metrics/metrics.h"
#include "common/publish/floor_files.h"
#include "worker/prepare/linear_floor.h"
#include "worker/prepare/prior_floor.h"

namespace traind {

// A floor, and the season that it found.
struct SeasonalFloor {
  Floor floor;
  int64_t period = 1;
};

// Each row is taken to be as the last one known a whole number of seasons before
// it, `horizon` rows or more. The season's length is one of a few (a day of hours,
// a week, a year, ..., or 1: no season), the one that scores best out of fold.
// Test rows beyond the horizon go on from what was predicted. None where the
// horizon is 0.
std::optional<SeasonalFloor> SeasonalNaiveFloor(const Table& table, const FloorFolds& folds,
                                                Metric metric);

// Ridge regression on the last known values of the targets, on those a season
// (`period`) ago, and on the last known row's numbers: one model per fold, fitted
// on what the fold is trained on. None where the time does not suffice.
std::optional<Floor> LagFloor(const Table& table, const FloorFolds& folds, Metric metric,
                              int64_t period, const LinearFloorOptions& options,
                              const Clock& clock);

}  // namespace traind
