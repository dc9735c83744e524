// The masks of a Prediction.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <string>
#include <vector>

#include "common/data/volume/answer_mask.h"
#include "common/data/volume/mask_writer.h"
#include "common/data/volume/volume_set.h"
#include "common/publish/test_values.h"

namespace traind {

struct MaskFiles {
  // masks/<id>.npy, .tiff, .nii.gz or .png, in the order of the test volumes.
  std::vector<std::string> names;
  // [test volumes][1, or 1 + classes]: the foreground's share of the voxels and, with several
  // classes, each class's share.
  std::vector<std::vector<float>> shares;
};

// Returns a unique file name for each row: its id, in which every character except letters, digits,
// '-', '_' and '.' becomes '_'. Without ids it is the row's number.
std::vector<std::string> MaskNames(const std::vector<std::string>& ids, size_t rows);

// Returns the form that is asked for by its name in the spec. Empty: that of the test volumes if
// all of them are NIfTI, PNG if all are images, else NPY.
MaskForm MaskFormOf(const std::string& name, const VolumeSet& set);

// Hands over the mask of a test volume (AnswerMask). values: [voxels of all test volumes,
// set.values()], read slice by slice; those of the volume begin at `begin`. largest: as for
// AnswerMask. Errors: those of `take`.
absl::Status ReadAnswer(const VolumeSet& set, const StoredVolume& volume,
                        const JoinedValues& values, size_t begin, absl::Span<const int> largest,
                        AnswerMask::Take take);

// Writes the mask of each test volume into `folder`; NPY stands in for PNG where a volume has
// several slices. values, largest: as for ReadAnswer. Errors: those of MaskWriter.
absl::StatusOr<MaskFiles> WriteMasks(const std::string& folder, MaskForm form, const VolumeSet& set,
                                     const std::vector<std::string>& ids,
                                     const JoinedValues& values, absl::Span<const int> largest);

}  // namespace traind
