// How often a volume's voxels have which value.
#pragma once

#include <absl/types/span.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/data/volume/volume_set.h"

namespace traind {

// Parts of equal width between the least and the most value of some volumes. Values beyond are
// in the outermost ones.
struct IntensityBins {
  static constexpr size_t kCount = 1024;

  size_t Of(float value) const {
    const float at = (value - least) * scale;
    return std::min(kCount - 1, static_cast<size_t>(std::max(0.0f, at)));
  }

  float least = 0, scale = 0;
};
// REQUIRES: volumes is not empty.
IntensityBins BinsOf(absl::Span<const StoredVolume> volumes);

// [1 + classes][IntensityBins::kCount]: voxels of each of the mask's values, by their first
// channel.
using VoxelCounts = std::vector<std::vector<int64_t>>;
// REQUIRES: volume.has_mask.
VoxelCounts CountVoxels(const VolumeSet& set, const StoredVolume& volume,
                        const IntensityBins& bins);

}  // namespace traind
