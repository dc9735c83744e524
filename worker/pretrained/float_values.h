// Converts a file's tensors to float32.
#pragma once

#include <absl/types/span.h>

#include <cstdint>

#include "worker/checkpoint/safetensors.h"

namespace traind {

// The conversion is exact: every float16 and bfloat16 is a float32. out has
// as many values as data.
// REQUIRES: dtype is F32, F16 or BF16.
void ToFloats(DType dtype, absl::string_view data, absl::Span<float> out);

// Converts from IEEE 754 binary16.
float HalfToFloat(uint16_t bits);

}  // namespace traind
