// How well a mask covers another one.
#pragma once

#include <absl/types/span.h>

#include <cstdint>

namespace traind {

// Voxels of both masks, of each and of neither, counted; added up over the parts of a volume.
struct Overlap {
  int64_t both = 0, predicted = 0, wanted = 0;

  // Foreground: a probability of `threshold` or more. REQUIRES: equal sizes.
  void Add(absl::Span<const float> probability, absl::Span<const uint8_t> mask,
           float threshold = 0.5f) {
    for (size_t i = 0; i < mask.size(); ++i) {
      const bool here = probability[i] >= threshold, there = mask[i] != 0;
      both += here && there;
      predicted += here;
      wanted += there;
    }
  }
  // 2 |A and B| / (|A| + |B|); two empty masks: 1.
  double dice() const {
    const int64_t sum = predicted + wanted;
    return sum == 0 ? 1.0 : 2.0 * static_cast<double>(both) / static_cast<double>(sum);
  }
  // |A and B| / |A or B|; two empty masks: 1.
  double iou() const {
    const int64_t either = predicted + wanted - both;
    return either == 0 ? 1.0 : static_cast<double>(both) / static_cast<double>(either);
  }
};

}  // namespace traind
