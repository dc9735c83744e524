#include "worker/model/dropout.h"

#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>

#include <cmath>
#include <cstring>

#include "worker/data/random.h"

namespace traind {
namespace {

// Eight generators (xorshift32, Marsaglia 2003) side by side, each step of which
// decides two elements.
constexpr int kLanes = 8;
using Lanes = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));
using UnsignedLanes = uint32_t __attribute__((vector_size(kLanes * sizeof(uint32_t))));

class MaskGenerator {
 public:
  MaskGenerator(double p, uint64_t seed) {
    const int32_t dropped = static_cast<int32_t>(std::lround(p * 65536));
    threshold_ = Lanes{} + dropped;
    const float scale = 65536.0f / static_cast<float>(65536 - dropped);
    int32_t bits = 0;
    std::memcpy(&bits, &scale, sizeof bits);
    scale_bits_ = Lanes{} + bits;
    Random random(seed);
    for (int i = 0; i < kLanes; ++i) state_[i] = static_cast<uint32_t>(random.Next()) | 1u;
  }

  // 2 x kLanes values, each 0 or the scale.
  void Next(float* out) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    const Lanes low = reinterpret_cast<const Lanes&>(state_) & 0xffff;
    const UnsignedLanes shifted = state_ >> 16;
    const Lanes high = reinterpret_cast<const Lanes&>(shifted);
    const Lanes first = (low >= threshold_) & scale_bits_;
    const Lanes second = (high >= threshold_) & scale_bits_;
    std::memcpy(out, &first, sizeof first);
    std::memcpy(out + kLanes, &second, sizeof second);
  }

 private:
  UnsignedLanes state_{};
  Lanes threshold_{}, scale_bits_{};
};

}  // namespace

at::Tensor Dropout(const at::Tensor& x, double p, uint64_t seed) {
  if (x.is_cuda()) return at::dropout(x, p, /*train=*/true);
  constexpr int64_t kStep = 2 * kLanes;
  const int64_t size = x.numel();
  // Rounded up, so that whole steps fit.
  const at::Tensor mask =
      at::empty({(size + kStep - 1) / kStep * kStep}, at::TensorOptions().dtype(at::kFloat));
  float* out = mask.mutable_data_ptr<float>();
  MaskGenerator generator(p, seed);
  for (int64_t i = 0; i < size; i += kStep) generator.Next(out + i);
  return x.mul(mask.narrow(0, 0, size).view(x.sizes()).to(x.scalar_type()));
}

}  // namespace traind
