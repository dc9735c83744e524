// Histograms of the values of a volume's voxels.
#pragma once

#include <absl/types/span.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/data/volume/volume_set.h"

namespace traind {

// Bins of equal width between the minimum and maximum value of some volumes. Values outside of
// this range go to the outermost bins.
struct IntensityBins {
  static constexpr size_t kCount = 1024;

  size_t BinOf(float value) const {
    const float at = (value - least) * scale;
    return std::min(kCount - 1, static_cast<size_t>(std::max(0.0f, at)));
  }

  float least = 0, scale = 0;
};
// REQUIRES: volumes is not empty.
IntensityBins BinsOf(absl::Span<const StoredVolume> volumes);

// [1 + classes][IntensityBins::kCount]: numbers of voxels for each value of the mask,
// by their first channel.
using VoxelCounts = std::vector<std::vector<int64_t>>;
// REQUIRES: volume.has_mask.
VoxelCounts CountVoxels(const VolumeSet& set, const StoredVolume& volume,
                        const IntensityBins& bins);

}  // namespace traind
