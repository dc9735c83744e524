// The mask that predicted values of a volume stand for.
#pragma once

#include <absl/status/status.h>
#include <absl/types/span.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "common/data/volume/components.h"
#include "common/data/volume/resample.h"
#include "common/data/volume/volume_set.h"

namespace traind {

// Turns the predicted values of one volume, which come slice by slice on the set's grid, into the
// mask that answers: on the grid of the volume's file (the values are resampled linearly), with the
// labels of LabelOf (common/data/volume/overlap.h), and with what the set's treatment keeps of
// them. What is answered and what is scored both come from here. Threads: confined to one.
class AnswerMask {
 public:
  // Receives a slice of the mask, [H, W] of StoredVolume::own.
  using Take = std::function<absl::Status(int64_t z, absl::Span<const uint8_t> labels)>;

  // largest: where the set leaves components to the scores, the classes, from 0 on, of which they
  // have chosen the largest component alone.
  AnswerMask(const VolumeSet& set, const StoredVolume& volume, Take take,
             absl::Span<const int> largest = {});

  // values: the next slices, [slices, H, W, set.values()]. Errors: those of `take`.
  absl::Status Add(absl::Span<const float> values);
  // Hands over what waits for the last slice. REQUIRES: all slices were added.
  absl::Status Finish();

 private:
  absl::Status AddOwn(absl::Span<const float> values);

  const VolumeShape own_;
  const int64_t values_;
  const size_t slice_values_;  // on the set's grid
  const Take take_;
  std::optional<SliceResampler> resampler_;      // none: the grids are the same
  std::optional<LargestComponents> components_;  // none: all are kept
  std::vector<uint8_t> labels_;
  int64_t z_ = 0;
};

}  // namespace traind
