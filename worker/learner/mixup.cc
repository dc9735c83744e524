#include "worker/learner/mixup.h"

#include <ATen/ops/flip.h>
#include <ATen/ops/lerp.h>

#include <algorithm>
#include <cmath>

#include "worker/data/random.h"

namespace traind {

double MixupShare(double alpha, uint64_t seed) {
  // Jöhnk 1964: draw two powers of uniform numbers until their sum is at most 1; the share is
  // the first one's part of the sum.
  Random random(seed);
  while (true) {
    const double a = std::pow(1 - random.Uniform(), 1 / alpha);
    const double b = std::pow(1 - random.Uniform(), 1 / alpha);
    if (a + b <= 1 && a + b > 0) return std::max(a, b) / (a + b);
  }
}

at::Tensor Mixed(const at::Tensor& x, double share) {
  return at::lerp(x, at::flip(x, {0}), 1 - share);
}

}  // namespace traind
