// The volumes of a table's rows, decoded, in one file: what training and predicting read.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/data/table/mapped_file.h"
#include "common/data/table/table.h"
#include "common/data/volume/sliding_window.h"
#include "common/data/volume/volume_shape.h"

namespace traind {

// The voxels of one foreground class of a mask.
struct StoredClass {
  int64_t voxels = 0;
  // Some of them, spread evenly over the mask, by their index in it: int64 [places].
  uint64_t places_at = 0;
  int64_t places = 0;
};

struct StoredVolume {
  VolumeShape shape;
  VoxelType type = VoxelType::kFloat32;
  uint64_t voxels_at = 0;  // in the file: [D, H, W, C]
  bool has_mask = false;
  uint64_t mask_at = 0;              // uint8 [D, H, W], 0 to the number of classes
  std::vector<StoredClass> classes;  // of the mask, by its values from 1 on; without one: none
  float mean = 0, deviation = 1;     // of all values; a constant volume's deviation is 1
  float least = 0, most = 0;

  // Voxels of the mask that are not background.
  int64_t foreground() const {
    int64_t voxels = 0;
    for (const StoredClass& of : classes) voxels += of.voxels;
    return voxels;
  }
  // Of the mask's voxels.
  double share() const {
    return static_cast<double>(foreground()) / static_cast<double>(shape.voxels());
  }
};

// File: 8 bytes magic "TRVOLUM1"; voxels, masks and places, each aligned to 64 bytes; a JSON
// index; its size (u64 LE), and the magic again.
// Threads: safe to share. A volume is paged in as it is read, so that the set may be larger
// than memory.
class VolumeSet {
 public:
  // NotFound; DataLoss where the file is cut, or its index is not what it should be.
  static absl::StatusOr<std::shared_ptr<const VolumeSet>> Open(const std::string& path);

  absl::Span<const StoredVolume> volumes(Split split) const {
    return volumes_[split == Split::kTest ? 1 : 0];
  }
  int64_t channels() const { return channels_; }
  // Names of the masks' values from 1 on; empty: one foreground without a name.
  const std::vector<std::string>& classes() const { return classes_; }
  // What a voxel's answer has (LabelOf of common/data/volume/overlap.h): one probability, or those
  // of background and of each of several classes.
  int64_t values() const {
    return classes_.size() > 1 ? static_cast<int64_t>(classes_.size()) + 1 : 1;
  }
  int64_t TestVoxels() const;

  // out: [D, H, W, C] of the patch: (value - mean) / deviation, and 0 outside of the volume.
  void ReadPatch(const StoredVolume& volume, const Extent3& begin, const Extent3& extent,
                 float* out) const;
  // out: [D, H, W] of the patch: the mask's values, and 0 outside. REQUIRES: volume.has_mask.
  void ReadMaskPatch(const StoredVolume& volume, const Extent3& begin, const Extent3& extent,
                     float* out) const;
  // [H, W, C] as the file has them.
  void ReadSlice(const StoredVolume& volume, int64_t z, absl::Span<float> out) const;
  // Slices that one is done with, of voxels and mask: they leave this process's memory, until they
  // are read again.
  void Release(const StoredVolume& volume, int64_t z, int64_t slices) const;
  // [D, H, W].
  absl::Span<const uint8_t> Mask(const StoredVolume& volume) const;
  absl::Span<const int64_t> Places(const StoredClass& of) const;

 private:
  VolumeSet() = default;

  std::unique_ptr<MappedFile> file_;
  int64_t channels_ = 1;
  std::vector<std::string> classes_;
  std::vector<StoredVolume> volumes_[2];
};

}  // namespace traind
