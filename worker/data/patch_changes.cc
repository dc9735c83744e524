#include "worker/data/patch_changes.h"

#include <algorithm>

#include "worker/data/random.h"

namespace traind {
namespace {

// Reverses the order along an axis of `count` blocks with `inner` values each.
void Mirror(int64_t outer, int64_t count, int64_t inner, float* values) {
  for (int64_t o = 0; o < outer; ++o) {
    float* const begin = values + o * count * inner;
    for (int64_t i = 0; i < count / 2; ++i) {
      std::swap_ranges(begin + i * inner, begin + (i + 1) * inner, begin + (count - 1 - i) * inner);
    }
  }
}

void MirrorAxis(const Extent3& extent, size_t axis, int64_t channels, float* values) {
  int64_t outer = 1, inner = channels;
  for (size_t i = 0; i < axis; ++i) outer *= extent[i];
  for (size_t i = axis + 1; i < 3; ++i) inner *= extent[i];
  Mirror(outer, extent[axis], inner, values);
}

}  // namespace

void ChangePatch(const PatchChanges& changes, const Extent3& extent, int64_t channels,
                 uint64_t seed, float* values, float* mask) {
  Random random(seed);
  for (size_t axis = 0; axis < 3; ++axis) {
    if (!changes.mirror[axis] || random.Below(2) == 0) continue;
    MirrorAxis(extent, axis, channels, values);
    if (mask != nullptr) MirrorAxis(extent, axis, 1, mask);
  }
  if (changes.intensity == 0) return;
  const auto drawn = [&] { return changes.intensity * (2 * random.Uniform() - 1); };
  const auto contrast = static_cast<float>(1 + drawn());
  const auto brightness = static_cast<float>(drawn());
  const int64_t count = Volume(extent) * channels;
  for (int64_t i = 0; i < count; ++i) values[i] = values[i] * contrast + brightness;
}

}  // namespace traind
