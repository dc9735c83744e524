// The floor of volumes: the best global threshold.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "common/data/volume/volume_set.h"
#include "common/metrics/metrics.h"
#include "common/publish/floor_files.h"
#include "worker/prepare/prior_floor.h"

namespace traind {

// Values of a volume's first channel that are at or above (or: below) one number are
// foreground: the one that scores best, on the mean over the volumes that a fold is trained
// on, among 1024 between the least and the most value. `oof` has the score of each
// training volume, by its own fold's threshold; the file `test_file`, which is written, a 0 or 1
// for each voxel of the test volumes, by that of all training volumes. Errors: those of
// DurableWriter. REQUIRES: metric is kDice or kIou; every training volume has a mask.
absl::StatusOr<Floor> ThresholdFloor(const Table& table, const VolumeSet& set,
                                     const FloorFolds& folds, Metric metric,
                                     const std::string& test_file);

}  // namespace traind
