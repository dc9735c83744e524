// Resamples volumes to other numbers of voxels. Voxel i of an axis lies at (i + 0.5) / voxels of
// its length in both grids, as for torch's interpolate with align_corners=False, and for
// scipy.ndimage.zoom with grid_mode=True.
#pragma once

#include <absl/status/status.h>
#include <absl/types/span.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "common/data/volume/volume_shape.h"

namespace traind {

// What is done with values before they become coarser. A Gaussian, cut at 4 of its standard
// deviations, of (from / to - 1) / 2 voxels along each axis that becomes shorter, as for skimage's
// resize with anti_aliasing=True; beyond the edge lies the outermost voxel (mode='edge').
enum class LowPass { kNone, kGaussian };

// The voxels of an axis whose weighted sum is a voxel of another number of them.
struct AxisTaps {
  int64_t first = 0;
  std::vector<float> weights;  // of voxels first, first + 1, ...; they sum to 1
};

// Of each of `to` voxels, among `from`; beyond the outermost ones it is theirs.
std::vector<AxisTaps> TapsOf(int64_t from, int64_t to, LowPass low_pass);

// The nearest of `from` voxels to voxel `index` of `to`; of two as near, the later one (torch:
// "nearest-exact").
inline int64_t NearestPlaceOf(int64_t index, int64_t from, int64_t to) {
  return (2 * index + 1) * from / (2 * to);
}

// Resamples a volume linearly along each axis, slice by slice. It holds as many slices of the
// result's height and width as AxisTaps of the depth have weights: two without low-pass.
// Threads: confined to one.
class SliceResampler {
 public:
  // Receives a slice, [H, W, values].
  using Take = std::function<absl::Status(absl::Span<const float> slice)>;

  // values: of each voxel; the shapes' channels do not count.
  SliceResampler(const VolumeShape& from, const VolumeShape& to, int64_t values,
                 LowPass low_pass = LowPass::kNone);

  // slice: the next one, [H, W, values]. Hands over the slices that become complete by it, in
  // order. After the last slice all are handed over. Errors: those of `take`.
  absl::Status Add(absl::Span<const float> slice, const Take& take);

 private:
  void Resize(const float* slice, std::vector<float>& out);

  const int64_t from_width_, values_;
  const std::vector<AxisTaps> slices_, rows_, columns_;  // [D], [H], [W] of `to`
  std::vector<std::vector<float>> resized_;  // of the last slices: [H, W, values] of `to`
  std::vector<float> row_, joined_;
  int64_t added_ = 0;
  size_t done_ = 0;
};

}  // namespace traind
