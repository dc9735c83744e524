// The floor of volumes, kept so that it predicts later ones: a label for each range of values.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/data/table/feature_reader.h"
#include "common/data/volume/volume_input.h"
#include "common/data/volume/volume_set.h"
#include "worker/floor/intensity_bins.h"

namespace traind {

// The label of a voxel with this value in its first channel.
using VoxelLabel = std::function<uint8_t(float value)>;

struct VolumeFloorModel {
  std::string job;
  std::string name;          // threshold, ranges
  std::string table_sha256;  // of the table that it was fitted on
  InputSchema input;
  VolumeInput volume;
  IntensityBins bins;
  std::vector<uint8_t> labels;  // [IntensityBins::kCount]: by the value of the first channel

  // The model has to outlive it.
  VoxelLabel Label() const {
    return [this](float value) { return labels[bins.BinOf(value)]; };
  }
};

// Reads a slice of the volume and labels it. values: [H, W, set.values()], where a voxel's label
// gets probability 1.
void AnswerSlice(const VolumeSet& set, const StoredVolume& volume, int64_t z,
                 const VoxelLabel& label, std::vector<float>& values);

// Answers the test volumes, one after the other, slice by slice. Errors: those of `take`.
absl::Status AnswerVolumes(const VolumeSet& set, const VoxelLabel& label,
                           const std::function<absl::Status(absl::Span<const float>)>& take);

// Writes the file durably. dir: the floor's existing folder. Errors: those of WriteFileDurably.
absl::Status WriteVolumeFloorModel(const std::string& dir, const VolumeFloorModel& model);

// Errors: NotFound; DataLoss says how the file is damaged.
absl::StatusOr<VolumeFloorModel> ReadVolumeFloorModel(const std::string& dir);

}  // namespace traind
