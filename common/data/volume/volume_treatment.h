#pragma once

#include <optional>

#include "common/data/volume/spacing.h"

namespace traind {

// What is done with volumes besides decoding them.
struct VolumeTreatment {
  std::optional<Spacing> spacing;  // of all volumes, which are resampled to it
  bool largest_component = false;  // of each class, which alone an answer keeps
};

}  // namespace traind
