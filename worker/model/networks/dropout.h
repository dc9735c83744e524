#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace traind {

// x with each element zeroed with probability p (to 1/65536) and the others scaled
// to keep the mean. Which ones follows from the seed alone: on the CPU by a
// generator of our own, many times as fast as torch's, which would take a quarter
// of an MLP's step; on a GPU by the device's, which the caller has seeded.
// REQUIRES: 0 <= p < 1.
at::Tensor Dropout(const at::Tensor& x, double p, uint64_t seed);

}  // namespace traind
