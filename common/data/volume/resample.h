// Resamples volumes to other numbers of voxels. Voxel i of an axis lies at (i + 0.5) / voxels of
// its length in both grids, as for torch's interpolate with align_corners=False, and for
// scipy.ndimage.zoom with grid_mode=True.
#pragma once

#include <absl/status/status.h>
#include <absl/types/span.h>

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "common/data/volume/volume_shape.h"

namespace traind {

// Between two voxels of an axis.
struct LinearPlace {
  int64_t low = 0, high = 0;  // may be the same voxel
  float share_of_high = 0;
};

// Where voxel `index` of an axis of `to` voxels lies among `from` voxels; beyond the outermost ones
// it is theirs.
LinearPlace LinearPlaceOf(int64_t index, int64_t from, int64_t to);

// The nearest of `from` voxels to voxel `index` of `to`; of two as near, the later one (torch:
// "nearest-exact").
inline int64_t NearestPlaceOf(int64_t index, int64_t from, int64_t to) {
  return (2 * index + 1) * from / (2 * to);
}

// Resamples a volume linearly along each axis, slice by slice. It holds two slices.
// Threads: confined to one.
class SliceResampler {
 public:
  // Receives a slice, [H, W, values].
  using Take = std::function<absl::Status(absl::Span<const float> slice)>;

  // values: of each voxel; the shapes' channels do not count.
  SliceResampler(const VolumeShape& from, const VolumeShape& to, int64_t values);

  // slice: the next one, [H, W, values]. Hands over the slices that become complete by it, in
  // order. After the last slice all are handed over. Errors: those of `take`.
  absl::Status Add(absl::Span<const float> slice, const Take& take);

 private:
  void Resize(const float* slice, std::vector<float>& out);

  const VolumeShape from_, to_;
  const int64_t values_;
  std::vector<LinearPlace> rows_, columns_;    // [H], [W] of `to`
  std::array<std::vector<float>, 2> resized_;  // of the last two slices: [H, W, values] of `to`
  std::vector<float> row_, between_;
  int64_t added_ = 0, done_ = 0;
};

}  // namespace traind
