// Random turns, sizes and elastic changes of patches of volumes, in the plane of height and width
// (AugmentSpec in proto/job.proto).
#pragma once

#include <cstdint>
#include <vector>

#include "common/data/volume/sliding_window.h"

namespace traind {

struct WarpSettings {
  double rotate = 0;   // degrees: the angle is uniform in [-rotate, rotate)
  double scale = 0;    // the size is uniform in [1 - scale, 1 + scale); below 1
  double elastic = 0;  // standard deviation of the control points, in voxels

  bool any() const { return rotate > 0 || scale > 0 || elastic > 0; }
};

// Where the voxels of a patch come from, alike in all of its slices: a place for each voxel of a
// slice, in a box of the volume.
class PatchWarp {
 public:
  // The seed alone decides. A voxel's place is its own, turned and scaled around the middle of the
  // patch, plus a displacement between control points that are 16 voxels apart: each has two normal
  // numbers, and cubic B-splines lie between (free-form deformations, Rueckert et al. 1999).
  PatchWarp(const WarpSettings& settings, const Extent3& patch, uint64_t seed);

  // The box that is read, [0] of which is the patch's own depth; its begin counts from the patch's.
  const Extent3& begin() const { return begin_; }
  const Extent3& extent() const { return extent_; }

  // from: [box, channels], to: [patch, channels]; linear between voxels.
  void WarpValues(const float* from, int64_t channels, float* to) const;
  // from: [box], to: [patch]; the nearest voxel.
  void WarpMask(const float* from, float* to) const;

 private:
  Extent3 patch_, begin_, extent_;
  std::vector<float> y_, x_;  // [H, W], in the box
};

}  // namespace traind
