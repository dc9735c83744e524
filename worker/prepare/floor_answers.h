// What a floor of volumes answers, as a file: its values are too many to be held.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <string>

#include "common/durable_file.h"
#include "common/volume/volume_set.h"

namespace traind {

// Writes a test.npy of the set's test volumes, [voxels, set.values()], slice by slice, and
// durably: label(value of the voxel's first channel) has all of the probability, 0 being
// background. Errors: those of DurableWriter.
absl::StatusOr<FileDigest> WriteFloorAnswers(const std::string& path, const VolumeSet& set,
                                             const std::function<uint8_t(float)>& label);

}  // namespace traind
