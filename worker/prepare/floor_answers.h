// What a floor of volumes answers, by rules of one value.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "common/data/volume/volume_set.h"
#include "common/metrics/metrics.h"
#include "common/publish/floor_files.h"
#include "worker/prepare/prior_floor.h"

namespace traind {

// A rule for each fold, from the rows that it is trained on, and behind them one from all.
struct VolumeRules {
  std::string model;  // Floor's
  // Of a training volume by a rule, 0 to the number of folds.
  std::function<float(size_t row, size_t rule)> score;
  // By the rule from all rows: what a voxel is whose first channel has that value; 0: background.
  std::function<uint8_t(float)> label;
};

// `oof` has the score of each training volume by its own fold's rule, or that from all rows. The
// file `test_file` is written slice by slice, as its values are too many to be held, and durably:
// [voxels of the test volumes, set.values()], where a voxel's label has all of the probability.
// Errors: those of DurableWriter.
absl::StatusOr<Floor> AnswerByRules(const Table& table, const VolumeSet& set,
                                    const FloorFolds& folds, Metric metric,
                                    const VolumeRules& rules, const std::string& test_file);

}  // namespace traind
