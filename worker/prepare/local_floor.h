// Floors of a forecast that fit a statistical model to each series by itself.
#pragma once

#include <absl/time/time.h>
#include <absl/types/span.h>

#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/data/table/table.h"
#include "common/metrics/metrics.h"
#include "common/publish/floor_files.h"
#include "worker/prepare/prior_floor.h"
#include "worker/prepare/series_floor.h"
#include "worker/series/local_forecast.h"

namespace traind {

// A row's out-of-fold value comes from a model that was fitted on the rows before its fold, and
// that went on to the last row known (StepsAhead); test rows come from models of all training rows.
// Where a series has too few rows, the value of `naive` stays. Values are kept within the range of
// the fitted rows, widened on both sides by its width. Returns nothing if the time does not
// suffice, or the split is not forward.
std::optional<Floor> LocalFloor(const Table& table, const FloorFolds& folds, Metric metric,
                                const SeasonalFloor& naive, LocalModel kind, absl::Duration time,
                                const Clock& clock);

struct FloorMix {
  Floor floor;
  std::vector<double> weights;  // of each floor
};

// Mixes floors by weights that are chosen on out-of-fold rows (common/publish/trial_selection.h).
// Its name joins those of the floors with a weight: "ets+theta".
// REQUIRES: floors is not empty.
FloorMix MixFloors(const Table& table, const FloorFolds& folds, Metric metric,
                   absl::Span<const Floor> floors);

}  // namespace traind
