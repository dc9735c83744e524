#pragma once

#include <cstdint>
#include <cstring>

#include "common/base/target_clones.h"

namespace traind {

// Computes e^x as 2^n times a polynomial (degree 6, minimax on [0, 1)), with a relative error
// below 3e-7. It has no branches, so the compiler vectorises loops over it. Inputs are clamped
// to +-87. A NaN stays a NaN.
TRAIND_ALWAYS_INLINE float FastExp(float x) {
  const float limited = x < -87.0f ? -87.0f : (x > 87.0f ? 87.0f : x);
  const float scaled = limited * 1.44269504f;
  const float whole = __builtin_floorf(scaled), part = scaled - whole;
  float p = 1.5353362e-4f;
  p = p * part + 1.3398874e-3f;
  p = p * part + 9.6184373e-3f;
  p = p * part + 5.5503324e-2f;
  p = p * part + 2.4022648e-1f;
  p = p * part + 6.9314720e-1f;
  p = p * part + 1.0f;
  const int32_t bits = (static_cast<int32_t>(whole) + 127) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof power);
  return x == x ? p * power : x;
}

TRAIND_ALWAYS_INLINE float FastSigmoid(float x) { return 1.0f / (1.0f + FastExp(-x)); }
TRAIND_ALWAYS_INLINE float FastTanh(float x) { return 2.0f * FastSigmoid(2.0f * x) - 1.0f; }

}  // namespace traind
