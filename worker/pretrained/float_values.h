// Tensors of a file as float32.
#pragma once

#include <absl/types/span.h>

#include <cstdint>

#include "worker/checkpoint/safetensors.h"

namespace traind {

// Exactly: every float16 and bfloat16 is a float32. out: as many values as the data has.
// REQUIRES: dtype F32, F16 or BF16.
void ToFloats(DType dtype, absl::string_view data, absl::Span<float> out);

// IEEE 754 binary16.
float HalfToFloat(uint16_t bits);

}  // namespace traind
