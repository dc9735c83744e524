// Reads volumes of voxels from files: NPY arrays (or the one array of an NPZ archive), TIFF stacks,
// NIfTI files (or pairs of them), and PNG or JPEG images, which are volumes of one slice. They are
// read slice by slice, so they may be larger than memory.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/data/volume/nifti_header.h"
#include "common/data/volume/volume_shape.h"

namespace traind {

// Reads one volume slice by slice.
// Threads: confined to one. Errors: InvalidArgument, with the file and the slice.
class VolumeReader {
 public:
  virtual ~VolumeReader() = default;
  const VolumeShape& shape() const { return shape_; }
  VoxelType type() const { return type_; }
  // Where the voxels of a NIfTI file lie.
  const std::optional<NiftiGeometry>& geometry() const { return geometry_; }
  // Whether the file is a PNG or JPEG image.
  bool picture() const { return picture_; }
  // out: [H, W, C], as float32. InvalidArgument, with the place: a voxel is NaN or infinite.
  // REQUIRES: 0 <= z < depth, out.size() == shape().slice().
  absl::Status ReadSlice(int64_t z, absl::Span<float> out);

 protected:
  explicit VolumeReader(std::string path) : path_(std::move(path)) {}
  virtual absl::Status Decode(int64_t z, absl::Span<float> out) = 0;
  const std::string& path() const { return path_; }
  absl::Status Wrong(absl::string_view what) const;  // InvalidArgument "PATH: what"

  VolumeShape shape_;
  VoxelType type_ = VoxelType::kFloat32;
  std::optional<NiftiGeometry> geometry_;
  bool picture_ = false;

 private:
  const std::string path_;
};

// What the numbers of a volume are. Those of a mask are classes, so a PNG's palette is not looked
// up.
enum class VolumeUse { kVoxels, kMask };

// Recognizes the file by its first bytes. NPY: [H, W], [D, H, W] or [C, D, H, W], C order, float32,
// float64, or integers of 8 to 32 bits. TIFF (also BigTIFF): one page per slice, all of the same
// format, 8, 16 or 32 bits, channels interleaved. NIfTI (versions 1 and 2, .nii, also packed by
// gzip, or one of a pair, .hdr and .img): x, y and z are W, H and D, a fourth dimension is C;
// integers of 8 to 64 bits, float32 or float64, scaled as the header says; axes are not turned
// (TurnedVolume does that). PNG and JPEG: grey or colour, 8 bits (of 16 the upper ones). Errors:
// NotFound; InvalidArgument: the file is cut, or is something else.
absl::StatusOr<std::unique_ptr<VolumeReader>> OpenVolume(const std::string& path,
                                                         VolumeUse use = VolumeUse::kVoxels);

// Used by OpenVolume.
absl::StatusOr<std::unique_ptr<VolumeReader>> OpenNpyVolume(const std::string& path, bool archive);
absl::StatusOr<std::unique_ptr<VolumeReader>> OpenTiffVolume(const std::string& path);
absl::StatusOr<std::unique_ptr<VolumeReader>> OpenNiftiVolume(const std::string& path);
absl::StatusOr<std::unique_ptr<VolumeReader>> OpenPictureVolume(const std::string& path,
                                                                VolumeUse use);

}  // namespace traind
