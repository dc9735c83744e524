// The decoded volumes of a table's rows in one file, which training and prediction read.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/data/table/mapped_file.h"
#include "common/data/table/table.h"
#include "common/data/volume/nifti_header.h"
#include "common/data/volume/orientation.h"
#include "common/data/volume/overlap.h"
#include "common/data/volume/sliding_window.h"
#include "common/data/volume/volume_shape.h"
#include "common/data/volume/volume_treatment.h"

namespace traind {

// The voxels of one foreground class of a mask.
struct StoredClass {
  int64_t voxels = 0;
  // A sample of them, spread evenly over the mask, as indices into it: int64 [places].
  uint64_t places_at = 0;
  int64_t places = 0;
};

struct StoredVolume {
  VolumeShape shape;
  VoxelType type = VoxelType::kFloat32;
  uint64_t voxels_at = 0;  // in the file: [D, H, W, C]
  bool has_mask = false;
  uint64_t mask_at = 0;              // uint8 [D, H, W], values from 0 to the number of classes
  std::vector<StoredClass> classes;  // [value - 1]; empty without a mask
  float mean = 0, deviation = 1;     // of all values; deviation is 1 for a constant volume
  float least = 0, most = 0;
  std::optional<NiftiGeometry> geometry;  // of a NIfTI file
  bool picture = false;                   // of a PNG or JPEG file
  Orientation orientation;                // which turned the file's axes
  // The grid of the file, its axes turned, on which masks are answered and scored. The rest is
  // about the resampled volume (data.volume.spacing).
  VolumeShape own;
  uint64_t own_mask_at = 0;  // as mask_at

  bool resampled() const { return own != shape; }
  // Number of voxels that are not background.
  int64_t foreground() const {
    int64_t voxels = 0;
    for (const StoredClass& of : classes) voxels += of.voxels;
    return voxels;
  }
  // The foreground's share of the mask's voxels.
  double share() const {
    return static_cast<double>(foreground()) / static_cast<double>(shape.voxels());
  }
};

// File format: 8 bytes magic "TRVOLUM1"; voxels, masks and places, each aligned to 64 bytes; a JSON
// index; its size (u64 LE), and the magic again.
// Threads: safe to share. Volumes are paged in as they are read, so that the set may be larger than
// memory.
class VolumeSet {
 public:
  // NotFound; DataLoss: the file is cut, or its index is invalid.
  static absl::StatusOr<std::shared_ptr<const VolumeSet>> Open(const std::string& path);

  absl::Span<const StoredVolume> volumes(Split split) const {
    return volumes_[split == Split::kTest ? 1 : 0];
  }
  int64_t channels() const { return channels_; }
  // Names of the masks' values from 1 on; empty: one foreground class without a name.
  const std::vector<std::string>& classes() const { return classes_; }
  // Number of predicted values per voxel (LabelOf in common/data/volume/overlap.h): one
  // probability, or those of background and of each of several classes.
  int64_t values() const { return ValuesPerVoxel(classes_.size()); }
  // Number of foreground classes.
  int64_t foregrounds() const { return std::max<int64_t>(1, values() - 1); }
  // Number of values that an out-of-fold answer has for a volume (AnswerScore::Read).
  int row_values() const {
    return 1 + (treatment_.choose_components ? static_cast<int>(foregrounds()) : 0);
  }
  int64_t TestVoxels() const;
  // What was done with all volumes, and is done with answers. Sets of older engines do not tell
  // the spacing.
  const VolumeTreatment& treatment() const { return treatment_; }
  // Returns the extent of the patches that are learnt where `asked` is asked for: one slice deep
  // where no training volume is deeper.
  Extent3 PatchOf(Extent3 asked) const;

  // Reads a patch, [D, H, W, C]: (value - mean) / deviation, and 0 outside the volume.
  void ReadPatch(const StoredVolume& volume, const Extent3& begin, const Extent3& extent,
                 float* out) const;
  // Reads a patch of the mask, [D, H, W]: its values, and 0 outside. REQUIRES: volume.has_mask.
  void ReadMaskPatch(const StoredVolume& volume, const Extent3& begin, const Extent3& extent,
                     float* out) const;
  // Reads a slice, [H, W, C], with the values of the file.
  void ReadSlice(const StoredVolume& volume, int64_t z, absl::Span<float> out) const;
  // Drops slices of voxels and mask from this process's memory until they are read again.
  void Release(const StoredVolume& volume, int64_t z, int64_t slices) const;
  // The whole mask, [D, H, W].
  absl::Span<const uint8_t> Mask(const StoredVolume& volume) const;
  // A slice of the mask on the grid of the file, [H, W]. REQUIRES: volume.has_mask.
  absl::Span<const uint8_t> OwnMaskSlice(const StoredVolume& volume, int64_t z) const;
  // Drops that slice from this process's memory until it is read again.
  void ReleaseOwnMaskSlice(const StoredVolume& volume, int64_t z) const;
  absl::Span<const int64_t> Places(const StoredClass& of) const;

 private:
  VolumeSet() = default;

  std::unique_ptr<MappedFile> file_;
  int64_t channels_ = 1;
  std::vector<std::string> classes_;
  VolumeTreatment treatment_;
  std::vector<StoredVolume> volumes_[2];
};

}  // namespace traind
