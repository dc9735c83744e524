// How well a mask covers another one.
#pragma once

#include <absl/types/span.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace traind {

// Counts of voxels, added up over the parts of a volume.
struct Overlap {
  int64_t both = 0, predicted = 0, wanted = 0;

  // By a metric's function of the three counts (common/metrics/metric.h).
  template <class Function>
  double Score(Function of_masks) const {
    return of_masks(both, predicted, wanted);
  }
};

// What a voxel is answered to be, of its values in a test.npy: one value is the probability of
// the one foreground, 1 from one half on; several are those of background and of each class, of
// which the first largest one counts (numpy.argmax).
inline uint8_t LabelOf(const float* values, int64_t count) {
  if (count == 1) return values[0] >= 0.5f ? 1 : 0;
  return static_cast<uint8_t>(std::max_element(values, values + count) - values);
}

// A volume's answer against its mask. With several classes the score is the mean over the classes
// that the mask or the answer has, as in nnU-Net's evaluation (a class that neither has is NaN
// there, and left out). Where neither has any class the score is 1.
// Threads: confined to one.
class MaskScore {
 public:
  // values: of a voxel, as LabelOf takes them.
  explicit MaskScore(int64_t values)
      : values_(values), classes_(static_cast<size_t>(std::max<int64_t>(1, values - 1))) {}

  // answer: [voxels, values]; mask: [voxels], 0 to the number of classes.
  void Add(absl::Span<const float> answer, absl::Span<const uint8_t> mask) {
    for (size_t i = 0; i < mask.size(); ++i) {
      AddVoxels(LabelOf(answer.data() + static_cast<int64_t>(i) * values_, values_), mask[i], 1);
    }
  }
  // So many voxels that are answered to be `label` and are `wanted`.
  void AddVoxels(uint8_t label, uint8_t wanted, int64_t count) {
    if (label > 0) classes_[label - 1u].predicted += count;
    if (wanted > 0) classes_[wanted - 1u].wanted += count;
    if (label > 0 && label == wanted) classes_[label - 1u].both += count;
  }

  template <class Function>
  double Score(Function of_masks) const {
    double sum = 0;
    int present = 0;
    for (const Overlap& overlap : classes_) {
      if (overlap.predicted + overlap.wanted == 0) continue;
      sum += overlap.Score(of_masks);
      ++present;
    }
    return present == 0 ? 1.0 : sum / present;
  }

 private:
  const int64_t values_;
  std::vector<Overlap> classes_;
};

}  // namespace traind
