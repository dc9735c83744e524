// The scores of the mask that answers for a volume.
#pragma once

#include <absl/status/status.h>
#include <absl/types/span.h>

#include <cstdint>
#include <optional>

#include "common/data/volume/answer_mask.h"
#include "common/data/volume/components.h"
#include "common/data/volume/overlap.h"
#include "common/data/volume/volume_set.h"

namespace traind {

// Compares the mask of predicted values (AnswerMask) with the volume's own mask. Where the set
// leaves components to the scores, it is compared with and without smaller components.
// Threads: confined to one. REQUIRES: the volume has a mask.
class AnswerScore {
 public:
  // The references must outlive it.
  AnswerScore(const VolumeSet& set, const StoredVolume& volume);

  // As AnswerMask::Add.
  absl::Status Add(absl::Span<const float> values) { return mask_.Add(values); }
  // REQUIRES: all slices were added.
  absl::Status Finish();

  // out: [set.row_values()], the score, and where components are left to the scores, for each class
  // what the score gains if only the class's largest component is kept. REQUIRES: finished.
  // of_masks: of the metric (common/metrics/metric.h).
  template <class Function>
  void Read(Function of_masks, float* out) const {
    *out = static_cast<float>(score_.Score(of_masks));
    if (largest_score_.has_value()) score_.Gains(*largest_score_, of_masks, out + 1);
  }

 private:
  const VolumeSet& set_;
  const StoredVolume& volume_;
  MaskScore score_;
  std::optional<MaskScore> largest_score_;  // none: components are not left to the scores
  std::optional<LargestComponents> largest_;
  AnswerMask mask_;
};

}  // namespace traind
