// How the axes of a volume's file lie in the room, and volumes with their axes turned.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/data/volume/nifti_header.h"
#include "common/data/volume/spacing.h"
#include "common/data/volume/volume_shape.h"

namespace traind {

using Place3 = std::array<int64_t, 3>;  // of a voxel: z, y, x

// Which axes of a file the axes of a turned volume are. Turned volumes lie in RAS+: x grows to the
// right, y to the front and z to the head.
struct Orientation {
  std::array<size_t, 3> axes = {0, 1, 2};  // [z, y, x]: the file's axis, 0 for its z
  std::array<bool, 3> flipped = {};        // [z, y, x]: it runs the other way in the file

  bool turned() const { return *this != Orientation(); }
  // Whether each slice of the turned volume holds the voxels of the file's slice of that number.
  bool keeps_slices() const { return axes[0] == 0 && !flipped[0]; }
  // The orientation that turns a turned volume back into its file's order.
  Orientation Inverse() const;
  VolumeShape ShapeOf(const VolumeShape& file) const;
  Spacing SpacingOf(const Spacing& file) const;
  // Where a voxel of the turned volume lies in the file, a volume of that shape.
  Place3 InFile(const Place3& turned, const VolumeShape& file) const;

  friend bool operator==(const Orientation& a, const Orientation& b) {
    return a.axes == b.axes && a.flipped == b.flipped;
  }
  friend bool operator!=(const Orientation& a, const Orientation& b) { return !(a == b); }
};

// [row]: a coordinate of the room (right, front, head) in the header's unit, of the voxel x, y, z
// and 1.
using Affine = std::array<std::array<double, 4>, 3>;

// Where the header places voxels: by sform, else by qform. None: it tells neither, or axes that do
// not span a room.
std::optional<Affine> AffineOf(const NiftiGeometry& geometry);

// The orientation that brings the file's axes closest to RAS+, as nibabel's as_closest_canonical
// does. Where AffineOf tells nothing, axes are not turned. A file of a single slice remains one:
// only its rows and columns are turned. file: its shape.
Orientation OrientationOf(const NiftiGeometry& geometry, const VolumeShape& file);

// Whether two files place the voxels of their turned volumes alike: no corner lies further than
// half a voxel from that of the other. The shapes are those of the files.
bool LieAlike(const NiftiGeometry& a, const VolumeShape& shape_a, const NiftiGeometry& b,
              const VolumeShape& shape_b);

// Turns a volume slice by slice. Slices that are not kept whole wait in a file without a name
// (OpenNamelessFile).
// Threads: confined to one.
class SliceTurner {
 public:
  // from: shape of the slices that come; to: `orientation` turns them. scratch: the folder of that
  // file. Errors: those of writing files, such as ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<SliceTurner>> Create(const VolumeShape& from,
                                                             const Orientation& orientation,
                                                             size_t voxel_bytes,
                                                             const std::string& scratch);
  ~SliceTurner();
  SliceTurner(const SliceTurner&) = delete;
  SliceTurner& operator=(const SliceTurner&) = delete;

  // slice: [H, W] of voxels.
  void Put(int64_t z, const char* slice);
  // A turned slice, [H, W] of voxels. REQUIRES: all slices were put; where the orientation keeps
  // slices, slice z was the last one.
  void Read(int64_t z, char* slice) const;

 private:
  SliceTurner(const VolumeShape& from, const Orientation& orientation, size_t voxel_bytes);
  absl::Status Map(const std::string& scratch);

  const VolumeShape to_;
  const size_t height_, width_;  // of the slices that come
  const size_t voxel_bytes_;
  const bool keeps_slices_;
  int64_t origin_ = 0;                // in `to`, the voxel 0, 0, 0 of `from`
  std::array<int64_t, 3> strides_{};  // in `to`, of the axes of `from`
  std::vector<char> one_;             // where slices are kept
  char* voxels_ = nullptr;            // [D, H, W] of `to`
  size_t bytes_ = 0;
};

}  // namespace traind
