// The header of NIfTI files, versions 1 and 2 (https://nifti.nimh.nih.gov/nifti-1, nifti-2): what
// the voxels are, and where they lie in the room.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/data/volume/volume_shape.h"

namespace traind {

// Where the voxels lie: the header's fields of the same names, finite.
struct NiftiGeometry {
  std::array<double, 4> pixdim = {1, 1, 1, 1};  // qfac, then the spacing of x, y, z
  int64_t xyzt_units = 2;                       // millimetres
  int64_t qform_code = 0, sform_code = 0;
  std::array<double, 6> quatern = {};  // quatern_b, c, d, qoffset_x, y, z
  std::array<double, 12> srow = {};    // srow_x, srow_y, srow_z

  friend bool operator==(const NiftiGeometry& a, const NiftiGeometry& b) {
    return a.pixdim == b.pixdim && a.xyzt_units == b.xyzt_units && a.qform_code == b.qform_code &&
           a.sform_code == b.sform_code && a.quatern == b.quatern && a.srow == b.srow;
  }
};

struct NiftiHeader {
  VolumeShape shape;  // the file's [channels, D, H, W], x being the width, which changes fastest
  int64_t datatype = 0;
  bool swapped = false;                 // of the other byte order than this machine
  bool pair = false;                    // the voxels are in another file (.img)
  uint64_t data_begin = 0;              // of the voxels, in their file
  double scl_slope = 0, scl_inter = 0;  // slope 0: the values are as stored
  NiftiGeometry geometry;
};

// A header has as many bytes at most.
inline constexpr size_t kMostNiftiHeader = 540;

// Whether a file that begins so is NIfTI, of either version and byte order, or ANALYZE 7.5, from
// which NIfTI took its first fields. bytes: at least 4.
bool IsNifti(absl::string_view bytes);

// bytes: the file's first kMostNiftiHeader bytes, or all if it has fewer. InvalidArgument, without
// the file's name: it is cut, it is of ANALYZE 7.5, it has more than one dimension behind x, y and
// z, or no voxels.
absl::StatusOr<NiftiHeader> ParseNiftiHeader(absl::string_view bytes);

// The header of a mask, with what stands between it and the voxels: uint8 [D, H, W], little-endian.
// It is of version 1 unless an extent is larger than that can tell.
std::string NiftiMaskHeader(const VolumeShape& shape, const NiftiGeometry& geometry);

}  // namespace traind
