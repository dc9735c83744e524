#pragma once

#include <cstdint>
#include <cstring>

#include "common/base/target_clones.h"

namespace traind {

// A bfloat16: the upper half of a float32.
struct Bf16 {
  uint16_t bits = 0;
};

TRAIND_ALWAYS_INLINE float Load(float value) { return value; }
TRAIND_ALWAYS_INLINE float Load(Bf16 value) {
  const uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
  float out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

TRAIND_ALWAYS_INLINE void Store(float& target, float value) { target = value; }
// Rounds to the nearest value, ties to even. A NaN stays a NaN.
TRAIND_ALWAYS_INLINE void Store(Bf16& target, float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  target.bits = static_cast<uint16_t>(value == value ? rounded : 0x7fc0u);
}

}  // namespace traind
