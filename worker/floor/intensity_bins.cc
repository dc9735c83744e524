#include "worker/floor/intensity_bins.h"

namespace traind {

IntensityBins BinsOf(absl::Span<const StoredVolume> volumes) {
  float least = volumes[0].least, most = volumes[0].most;
  for (const StoredVolume& volume : volumes) {
    least = std::min(least, volume.least);
    most = std::max(most, volume.most);
  }
  return {least, most > least ? static_cast<float>(IntensityBins::kCount) / (most - least) : 0};
}

VoxelCounts CountVoxels(const VolumeSet& set, const StoredVolume& volume,
                        const IntensityBins& bins) {
  VoxelCounts counts(volume.classes.size() + 1, std::vector<int64_t>(IntensityBins::kCount));
  std::vector<float> slice(static_cast<size_t>(volume.shape.slice()));
  const auto channels = static_cast<size_t>(volume.shape.channels);
  const size_t plane = slice.size() / channels;
  const auto mask = set.Mask(volume);
  for (int64_t z = 0; z < volume.shape.depth; ++z) {
    set.ReadSlice(volume, z, absl::MakeSpan(slice));
    const uint8_t* const labels = mask.data() + static_cast<size_t>(z) * plane;
    for (size_t i = 0; i < plane; ++i) ++counts[labels[i]][bins.BinOf(slice[i * channels])];
    set.Release(volume, z, 1);
  }
  return counts;
}

}  // namespace traind
