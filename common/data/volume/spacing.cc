#include "common/data/volume/spacing.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>

namespace traind {
namespace {

constexpr const char* kAxes[] = {"z", "y", "x"};

// xyzt_units: the length's unit is in the lowest three bits. Without one millimetres are usual.
double MillimetresOf(int64_t units) {
  constexpr int64_t kMask = 7, kMetre = 1, kMicron = 3;
  const int64_t unit = units & kMask;
  return unit == kMetre ? 1000 : unit == kMicron ? 0.001 : 1;
}

}  // namespace

std::string ToString(const Spacing& spacing) {
  return absl::StrCat(absl::StrJoin(spacing, " x "), " mm");
}

absl::StatusOr<Spacing> SpacingOf(const std::optional<NiftiGeometry>& geometry) {
  if (!geometry.has_value()) {
    return absl::InvalidArgumentError(
        "not a NIfTI file, so its spacing is unknown, which data.volume.spacing needs");
  }
  Spacing spacing;
  for (size_t axis = 0; axis < spacing.size(); ++axis) {
    const double distance = geometry->pixdim[spacing.size() - axis];  // x is the first
    spacing[axis] = distance * MillimetresOf(geometry->xyzt_units);
    if (distance > 0 && std::isfinite(distance)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the header has a spacing of ", distance, " along axis ", kAxes[axis],
                     "; data.volume.spacing needs positive, finite ones"));
  }
  return spacing;
}

Spacing MedianOf(std::vector<Spacing> spacings) {
  Spacing median;
  const size_t half = spacings.size() / 2;
  for (size_t axis = 0; axis < median.size(); ++axis) {
    std::sort(spacings.begin(), spacings.end(),
              [axis](const Spacing& a, const Spacing& b) { return a[axis] < b[axis]; });
    const double upper = spacings[half][axis];
    median[axis] = spacings.size() % 2 == 1 ? upper : (spacings[half - 1][axis] + upper) / 2;
  }
  return median;
}

absl::StatusOr<VolumeShape> ShapeAt(const VolumeShape& shape, const Spacing& from,
                                    const Spacing& to) {
  const std::array<int64_t, 3> extents = {shape.depth, shape.height, shape.width};
  std::array<int64_t, 3> resampled;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    const double voxels = static_cast<double>(extents[axis]) * from[axis] / to[axis];
    if (voxels > static_cast<double>(kMostExtent)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "along axis ", kAxes[axis], " it would have ", std::round(voxels), " voxels with a ",
          "data.volume.spacing of ", ToString(to), "; at most ", kMostExtent, " are allowed"));
    }
    resampled[axis] = std::max<int64_t>(1, std::llround(voxels));
  }
  const VolumeShape result = {resampled[0], resampled[1], resampled[2], shape.channels};
  if (result.slice() > kMostSliceValues) {
    return absl::InvalidArgumentError(
        absl::StrCat("with a data.volume.spacing of ", ToString(to), " it would have slices of ",
                     result.slice(), " values; at most ", kMostSliceValues, " are allowed"));
  }
  return result;
}

}  // namespace traind
