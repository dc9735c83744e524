// Predicts a volume patch by patch. Patches overlap by half; where they overlap, the prediction is
// their mean, weighted by a Gaussian around each patch's middle (as in nnU-Net: the standard
// deviation is an eighth of the patch; Isensee et al. 2021).
#pragma once

#include <absl/status/status.h>
#include <absl/types/span.h>

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace traind {

using Extent3 = std::array<int64_t, 3>;  // depth, height, width

inline int64_t Volume(const Extent3& extent) { return extent[0] * extent[1] * extent[2]; }

// Returns where patches begin along an axis: the fewest evenly spaced patches whose steps are at
// most `step`; the last one ends where the axis does. A patch longer than the axis begins once, at
// 0.
std::vector<int64_t> WindowBegins(int64_t extent, int64_t patch, int64_t step);

// Returns [patch]: weights of a patch's voxels; the middle has 1, and none is below 1e-3.
std::vector<float> GaussianWeights(const Extent3& patch);

struct SlidingWindow {
  Extent3 volume{}, patch{};
  int64_t at_once = 1;  // patches per call
  int64_t values = 1;   // predicted values per voxel
};

// Predicts the patches that begin at `begins` (all of the window's patch extent) into out [begins,
// values, patch]. The callee pads what lies beyond the volume; predictions there are dropped.
using PredictPatches =
    std::function<absl::Status(absl::Span<const Extent3> begins, absl::Span<float> out)>;
// Receives `slices` whole slices of the prediction, [slices, height, width, values], from z on.
using ReceiveSlices =
    std::function<absl::Status(int64_t z, int64_t slices, absl::Span<const float> answer)>;

// Hands over the prediction in the order of slices. It holds as many slices in memory as a patch is
// deep, whatever the volume's depth. A volume that one patch covers gets just that patch's
// prediction.
absl::Status PredictBySlidingWindow(const SlidingWindow& window, const PredictPatches& predict,
                                    const ReceiveSlices& take);

}  // namespace traind
