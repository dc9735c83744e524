// A volume predicted patch by patch: patches overlap by half, and where they do the answer
// is their mean, weighted by a Gaussian around each patch's middle (as nnU-Net does it: the
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

// Where patches begin along an axis: as few as leave no step longer than `step`, spread
// evenly, the last one ending where the axis does. A patch longer than the axis begins at 0 once.
std::vector<int64_t> WindowBegins(int64_t extent, int64_t patch, int64_t step);

// [patch]: weights of a patch's voxels, the middle's 1, none below 1e-3.
std::vector<float> GaussianWeights(const Extent3& patch);

struct SlidingWindow {
  Extent3 volume{}, patch{};
  int64_t at_once = 1;  // patches of a call
  int64_t values = 1;   // of a voxel's answer
};

// Predicts the patches that begin at `begins` (of the window's patch extent; what lies beyond
// the volume is filled by the callee and its answer dropped) into out [begins, values, patch].
using PredictPatches =
    std::function<absl::Status(absl::Span<const Extent3> begins, absl::Span<float> out)>;
// Takes `slices` whole slices of the answer, [slices, height, width, values], from z on.
using TakeSlices =
    std::function<absl::Status(int64_t z, int64_t slices, absl::Span<const float> answer)>;

// Hands the answer over in the order of its slices. Memory: as many slices as a patch is
// deep, whatever the volume's depth. A volume that one patch covers has just the patch's answer.
absl::Status PredictBySlidingWindow(const SlidingWindow& window, const PredictPatches& predict,
                                    const TakeSlices& take);

}  // namespace traind
