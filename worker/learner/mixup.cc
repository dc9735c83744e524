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

CutBox DrawCut(double alpha, uint64_t seed, int64_t height, int64_t width) {
  const double side = std::sqrt(1 - MixupShare(alpha, seed));
  constexpr uint64_t kOfPlace = 0x637574;
  Random random(seed ^ kOfPlace);
  const auto cut = [&](int64_t extent, int64_t& begin, int64_t& size) {
    const auto middle = static_cast<int64_t>(random.Below(static_cast<uint64_t>(extent)));
    const auto half = static_cast<int64_t>(side * static_cast<double>(extent) / 2);
    begin = std::max<int64_t>(0, middle - half);
    size = std::min(extent, middle + half) - begin;
  };
  CutBox box;
  cut(height, box.top, box.height);
  cut(width, box.left, box.width);
  box.share = 1 - static_cast<double>(box.height * box.width) / static_cast<double>(height * width);
  return box;
}

at::Tensor CutFromOthers(const at::Tensor& x, const CutBox& box) {
  const auto inside = [&box](const at::Tensor& images) {
    return images.narrow(2, box.top, box.height).narrow(3, box.left, box.width);
  };
  at::Tensor mixed = x.clone();
  inside(mixed).copy_(inside(x).flip({0}));
  return mixed;
}

bool TossForCut(uint64_t seed) {
  constexpr uint64_t kOfToss = 0x746f7373;
  return Random(seed ^ kOfToss).Below(2) == 1;
}

}  // namespace traind
