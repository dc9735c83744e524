// Mixup (Zhang, Cisse, Dauphin, Lopez-Paz 2018): training on mixtures of two samples.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace traind {

// Draws the larger share of a mixture, 0.5-1, from Beta(alpha, alpha). It
// follows from the seed alone.
// REQUIRES: 0 < alpha <= 1.
double MixupShare(double alpha, uint64_t seed);

// Mixes row i of x [B, ...] with row B - 1 - i: `share` of the former, the rest of the latter.
at::Tensor Mixed(const at::Tensor& x, double share);

}  // namespace traind
