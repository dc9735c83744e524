// Random changes of patches of volumes that leave what they show recognisable (AugmentSpec in
// proto/job.proto).
#pragma once

#include <array>
#include <cstdint>

#include "common/data/volume/sliding_window.h"
#include "worker/data/patch_warp.h"

namespace traind {

struct PatchChanges {
  std::array<bool, 3> mirror{};  // along depth, height, width: in half of the patches
  double intensity = 0;          // fraction of contrast and, in standard deviations, of brightness
  WarpSettings warp;             // comes first, see PatchWarp; the rest is ChangePatch's

  bool any() const { return mirror[0] || mirror[1] || mirror[2] || intensity > 0; }
};

// Changes a patch in place. values: [D, H, W, channels], standardised; mask: [D, H, W], or
// null. The seed alone decides: first whether each axis is mirrored, then value x contrast +
// brightness for all voxels, with contrast in [1 - intensity, 1 + intensity) and brightness in
// [-intensity, intensity).
void ChangePatch(const PatchChanges& changes, const Extent3& extent, int64_t channels,
                 uint64_t seed, float* values, float* mask);

}  // namespace traind
