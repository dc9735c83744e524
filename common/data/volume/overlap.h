// Measures how well two masks overlap.
#pragma once

#include <absl/types/span.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace traind {

// Counts of voxels in both masks and in each; the counts add up over the parts of a volume.
struct Overlap {
  int64_t both = 0, predicted = 0, wanted = 0;

  // Scores the counts by a metric's function of them (common/metrics/metric.h).
  template <class Function>
  double Score(Function of_masks) const {
    return of_masks(both, predicted, wanted);
  }
};

// Returns the number of predicted values per voxel, of masks with so many classes of foreground.
inline int64_t ValuesPerVoxel(size_t classes) {
  return classes > 1 ? static_cast<int64_t>(classes) + 1 : 1;
}

// Returns the predicted class of a voxel from its values in a test.npy. A single value is the
// probability of the one foreground class, and >= 0.5 means 1. Several values are those of
// background and of each class, and the first largest one wins (numpy.argmax).
inline uint8_t LabelOf(const float* values, int64_t count) {
  if (count == 1) return values[0] >= 0.5f ? 1 : 0;
  return static_cast<uint8_t>(std::max_element(values, values + count) - values);
}

// values: [voxels, count]; labels: [voxels].
inline void LabelsOf(absl::Span<const float> values, int64_t count, absl::Span<uint8_t> labels) {
  const float* voxel = values.data();
  for (uint8_t& label : labels) {
    label = LabelOf(voxel, count);
    voxel += count;
  }
}

// Scores a volume's prediction against its mask. With several classes the score is the mean over
// the classes that occur in the mask or in the prediction, as in nnU-Net's evaluation (a class in
// neither is NaN there, and left out). If no class occurs in either, the score is 1.
// Threads: confined to one.
class MaskScore {
 public:
  // values: values per voxel, as for LabelOf.
  explicit MaskScore(int64_t values)
      : classes_(static_cast<size_t>(std::max<int64_t>(1, values - 1))) {}

  // labels: the predicted mask, [voxels]; mask: [voxels]. Values from 0 to the number of classes.
  void Add(absl::Span<const uint8_t> labels, absl::Span<const uint8_t> mask) {
    for (size_t i = 0; i < mask.size(); ++i) AddVoxels(labels[i], mask[i], 1);
  }
  // Counts `count` voxels that are predicted as `label` and are `wanted`.
  void AddVoxels(uint8_t label, uint8_t wanted, int64_t count) {
    if (label > 0) classes_[label - 1u].predicted += count;
    if (wanted > 0) classes_[wanted - 1u].wanted += count;
    if (label > 0 && label == wanted) classes_[label - 1u].both += count;
  }

  template <class Function>
  double Score(Function of_masks) const {
    double sum = 0;
    for (const Overlap& overlap : classes_) {
      if (Occurs(overlap)) sum += overlap.Score(of_masks);
    }
    const int present = Present();
    return present == 0 ? 1.0 : sum / present;
  }
  // out: [classes], what the score gains with the class of another prediction. REQUIRES: the same
  // classes occur there.
  template <class Function>
  void Gains(const MaskScore& other, Function of_masks, float* out) const {
    const int present = Present();
    for (size_t i = 0; i < classes_.size(); ++i) {
      const bool occurs = Occurs(classes_[i]);
      const double gain =
          occurs ? other.classes_[i].Score(of_masks) - classes_[i].Score(of_masks) : 0;
      out[i] = static_cast<float>(occurs ? gain / present : 0);
    }
  }

 private:
  static bool Occurs(const Overlap& overlap) { return overlap.predicted + overlap.wanted > 0; }
  int Present() const {
    return static_cast<int>(std::count_if(classes_.begin(), classes_.end(), Occurs));
  }

  std::vector<Overlap> classes_;
};

}  // namespace traind
