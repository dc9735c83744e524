// The floor of volumes with several foreground classes: a range of values for each class.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "common/data/volume/volume_set.h"
#include "common/metrics/metrics.h"
#include "common/publish/floor_files.h"
#include "worker/floor/volume_floor_model.h"
#include "worker/prepare/prior_floor.h"

namespace traind {

// A voxel belongs to the class whose range contains its first channel's value; if several do,
// to the one whose range has the best score; if none does, to the background. A class's range
// is one whose mean score over the volumes that a fold trains on cannot be improved by moving
// one of its ends. Ends are taken from 1024 values between the minimum and the maximum, and the
// search starts from both sides.
// `oof` holds the score of each training volume by its own fold's ranges. Writes `test_file`,
// [voxels of the test volumes, 1 + classes], with a 1 for the class of each voxel by the ranges
// of all training volumes.
// `model` becomes the rule of all training volumes; its other fields are left.
// Errors: those of DurableWriter. REQUIRES: metric scores masks; every training volume has
// a mask; the set has several classes.
absl::StatusOr<Floor> RangeFloor(const Table& table, const VolumeSet& set, const FloorFolds& folds,
                                 Metric metric, const std::string& test_file,
                                 VolumeFloorModel& model);

}  // namespace traind
