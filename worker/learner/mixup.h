// Mixup (Zhang, Cisse, Dauphin, Lopez-Paz 2018): training on mixtures of two samples.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace traind {

// The larger share of a mixture, 0.5-1, of Beta(alpha, alpha); follows from the seed alone.
// REQUIRES: 0 < alpha <= 1.
double MixupShare(double alpha, uint64_t seed);

// Each row of x, [B, ...], with so much of itself and the rest of the row as far from the
// batch's end as it is from its beginning.
at::Tensor Mixed(const at::Tensor& x, double share);

}  // namespace traind
