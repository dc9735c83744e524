// The masks of a Prediction.
#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <string>
#include <vector>

#include "common/data/volume/mask_writer.h"
#include "common/data/volume/volume_set.h"
#include "common/publish/test_values.h"

namespace traind {

struct MaskFiles {
  std::vector<std::string> names;  // masks/<id>.npy or .tiff, in the order of the test volumes
  // [test volumes][1, or 1 + classes]: of the voxels that are foreground, and, where there are
  // several classes, of each.
  std::vector<std::vector<float>> shares;
};

// A name for each row's file: its id, with other characters than letters, digits, '-', '_'
// and '.' as '_', and never the same twice; ids empty: the row's number.
std::vector<std::string> MaskNames(const std::vector<std::string>& ids, size_t rows);

// Writes the mask of each test volume into `folder`, as LabelOf (common/data/volume/overlap.h)
// says. values: [voxels of all test volumes, set.values()], read slice by slice. Errors: those of
// DurableWriter.
absl::StatusOr<MaskFiles> WriteMasks(const std::string& folder, MaskForm form, const VolumeSet& set,
                                     const std::vector<std::string>& ids,
                                     const JoinedValues& values);

}  // namespace traind
