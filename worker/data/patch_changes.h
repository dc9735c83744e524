// Changes of patches of volumes that leave what they show as it is (AugmentSpec in
// proto/job.proto).
#pragma once

#include <array>
#include <cstdint>

#include "common/data/volume/sliding_window.h"

namespace traind {

struct PatchChanges {
  std::array<bool, 3> mirror{};  // along depth, height, width: half of the patches
  double intensity = 0;          // share of contrast and, in deviations, of brightness

  bool any() const { return mirror[0] || mirror[1] || mirror[2] || intensity > 0; }
};

// In place. values: [D, H, W, channels], standardised; mask: [D, H, W], or null. What is drawn
// follows from the seed alone: whether each axis is mirrored, then value x contrast + brightness
// for all voxels alike, contrast in [1 - intensity, 1 + intensity), brightness in
// [-intensity, intensity).
void ChangePatch(const PatchChanges& changes, const Extent3& extent, int64_t channels,
                 uint64_t seed, float* values, float* mask);

}  // namespace traind
