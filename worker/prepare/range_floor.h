// The floor of volumes with several foreground classes: a range of values for each.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "common/data/volume/volume_set.h"
#include "common/metrics/metrics.h"
#include "common/publish/floor_files.h"
#include "worker/prepare/prior_floor.h"

namespace traind {

// A voxel is of the class in whose range its first channel's value lies; of several such, of the
// one whose range scores best; of none, background. A class's range is the one whose mean score
// over the volumes that a fold is trained on cannot be made better by moving one of its ends,
// among ends at 1024 values between the least and the most; it is looked for from both sides.
// `oof` has the score of each training volume by its own fold's ranges; the file `test_file`, which
// is written, a 1 for the class of each voxel of the test volumes, [voxels, 1 + classes], by those
// of all training volumes. Errors: those of DurableWriter. REQUIRES: metric is kDice or kIou; every
// training volume has a mask; the set has several classes.
absl::StatusOr<Floor> RangeFloor(const Table& table, const VolumeSet& set, const FloorFolds& folds,
                                 Metric metric, const std::string& test_file);

}  // namespace traind
