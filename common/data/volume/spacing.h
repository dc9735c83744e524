// The distances of a volume's voxels, and the grids that other distances give.
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "common/data/volume/nifti_header.h"
#include "common/data/volume/volume_shape.h"

namespace traind {

// Millimetres between slices, rows and columns.
using Spacing = std::array<double, 3>;

// Returns "2.5 x 0.5 x 0.75 mm".
std::string ToString(const Spacing& spacing);

// Returns the spacing that a NIfTI file's header tells. InvalidArgument, without the file's name:
// there is no header, or it has a spacing that is not positive.
absl::StatusOr<Spacing> SpacingOf(const std::optional<NiftiGeometry>& geometry);

// Returns the median along each axis; of an even number the mean of the middle two.
// REQUIRES: spacings is not empty.
Spacing MedianOf(std::vector<Spacing> spacings);

// Returns the shape of a volume after resampling: along each axis its length divided by the
// spacing, rounded, and at least one voxel. InvalidArgument: it would be too large.
absl::StatusOr<VolumeShape> ShapeAt(const VolumeShape& shape, const Spacing& from,
                                    const Spacing& to);

}  // namespace traind
