// The predictions of a floor of volumes whose rules look at one value per voxel.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/data/volume/volume_set.h"
#include "common/metrics/metrics.h"
#include "common/publish/floor_files.h"
#include "worker/floor/volume_floor_model.h"
#include "worker/prepare/prior_floor.h"

namespace traind {

// One rule for each fold, fitted on the rows that the fold trains on, and after them one rule
// fitted on all rows.
struct VolumeRules {
  std::string model;  // see Floor
  // The score of a rule, 0 to the number of folds, on a training volume as it was decoded.
  std::function<float(size_t row, size_t rule)> score;
  IntensityBins bins;
  // [rule][bin]: the label of a voxel with this value in its first channel; 0: background.
  std::vector<std::vector<uint8_t>> labels;

  VoxelLabel LabelBy(size_t rule) const {
    return [this, rule](float value) { return labels[rule][bins.BinOf(value)]; };
  }
};

// `oof` holds the score of each training volume (AnswerScore) by its own fold's rule, or by the
// rule from all rows if it is in no fold. If the set's treatment changes masks after they are
// predicted, that is the score of the changed mask. Writes `test_file` durably and slice by slice,
// because its values may be too many to be held in memory: [voxels of the test volumes,
// set.values()], where a voxel's label gets probability 1. `model` becomes the last rule; its other
// fields are left. Errors: those of DurableWriter.
absl::StatusOr<Floor> AnswerByRules(const Table& table, const VolumeSet& set,
                                    const FloorFolds& folds, Metric metric,
                                    const VolumeRules& rules, const std::string& test_file,
                                    VolumeFloorModel& model);

}  // namespace traind
