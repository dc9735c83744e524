// The text encoder's sizes that no spec changes.
#pragma once

#include <cstdint>

namespace traind {

struct TextEncoderSizes {
  static constexpr int64_t kRelativeSpan = 32;  // buckets of distances either way
  static constexpr double kTokenScale = 0.1;    // of the embeddings that it starts with
  static constexpr int64_t kColumnWidth = 32;   // of the layer over numbers and categories
  static constexpr int64_t kHeadWidth = 64;     // of the layer over both
};

}  // namespace traind
