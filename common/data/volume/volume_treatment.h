#pragma once

#include <optional>

#include "common/data/volume/spacing.h"

namespace traind {

// Raise this with every change of the values that the same file becomes. 2: axes are turned, and
// volumes are blurred before they become coarser.
inline constexpr int kVolumeReaderVersion = 2;

// What is done with volumes besides decoding them.
struct VolumeTreatment {
  std::optional<Spacing> spacing;  // of all volumes, which are resampled to it
  bool largest_component = false;  // of each class, which alone an answer keeps
  // The out-of-fold scores choose the classes of which an answer keeps the largest component alone.
  bool choose_components = false;
  // Volumes that models predict are decoded as those were that they have learnt from.
  int reader = kVolumeReaderVersion;

  bool turns() const { return reader >= 2; }
  bool blurs() const { return reader >= 2; }
};

}  // namespace traind
