// The floor of volumes with one foreground class: the best global threshold.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "common/data/volume/volume_set.h"
#include "common/metrics/metrics.h"
#include "common/publish/floor_files.h"
#include "worker/floor/volume_floor_model.h"
#include "worker/prepare/prior_floor.h"

namespace traind {

// Voxels whose value in the first channel is at or above (or: below) the threshold are
// foreground. The threshold is the one with the best mean score over the volumes that a fold
// trains on, among 1024 values between the minimum and the maximum.
// `oof` holds the score of each training volume by its own fold's threshold. Writes
// `test_file`, a 0 or 1 for each voxel of the test volumes, by the threshold
// of all training volumes.
// `model` becomes the rule of all training volumes; its other fields are left.
// Errors: those of DurableWriter. REQUIRES: metric scores masks; every
// training volume has a mask.
absl::StatusOr<Floor> ThresholdFloor(const Table& table, const VolumeSet& set,
                                     const FloorFolds& folds, Metric metric,
                                     const std::string& test_file, VolumeFloorModel& model);

}  // namespace traind
