#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace traind {

// Zeroes each element of x with probability p (rounded to 1/65536) and scales the others so
// that the mean is preserved. On the CPU the seed alone decides which elements: our own
// generator is many times as fast as torch's, which would take a quarter of an MLP's step. On a
// GPU the device's generator decides, which the caller has seeded.
// REQUIRES: 0 <= p < 1.
at::Tensor Dropout(const at::Tensor& x, double p, uint64_t seed);

}  // namespace traind
