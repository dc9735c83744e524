// The masks of a Prediction.
#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <string>
#include <vector>

#include "common/volume/mask_writer.h"
#include "common/volume/volume_set.h"

namespace traind {

struct MaskFiles {
  std::vector<std::string> names;  // masks/<id>.npy or .tiff, in the order of the test volumes
  std::vector<float> shares;       // [test volumes]: of the voxels that are foreground
};

// A name for each row's file: its id, with other characters than letters, digits, '-', '_'
// and '.' as '_', and never the same twice; ids empty: the row's number.
std::vector<std::string> MaskNames(const std::vector<std::string>& ids, size_t rows);

// Writes the mask of each test volume into `folder`: foreground is a probability of one half
// or more. probabilities: of the voxels of all test volumes. Errors: those of DurableWriter.
absl::StatusOr<MaskFiles> WriteMasks(const std::string& folder, MaskForm form, const VolumeSet& set,
                                     const std::vector<std::string>& ids,
                                     absl::Span<const float> probabilities);

}  // namespace traind
