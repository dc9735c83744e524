#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "common/base/target_clones.h"
#include "worker/data/random.h"

namespace traind {

// Dropout factors: 0 for a dropped element, and for a kept one the scale that preserves the
// mean. They follow from p (rounded to 1/65536) and the seed alone. Eight xorshift32 generators
// (Marsaglia 2003) run side by side; each of their steps decides two elements.
// Threads: confined to one.
class DropoutMask {
 public:
  static constexpr int64_t kStep = 16;  // elements per call of Next()

  // REQUIRES: 0 <= p < 1.
  TRAIND_ALWAYS_INLINE DropoutMask(double p, uint64_t seed) {
    const float scale = Scale(p);
    int32_t bits = 0;
    std::memcpy(&bits, &scale, sizeof bits);
    scale_bits_ = Lanes{} + bits;
    threshold_ = Lanes{} + Dropped(p);
    Random random(seed);
    for (int i = 0; i < kLanes; ++i) state_[i] = static_cast<uint32_t>(random.Next()) | 1u;
  }

  static float Scale(double p) { return 65536.0f / static_cast<float>(65536 - Dropped(p)); }

  TRAIND_ALWAYS_INLINE void Next(float* out) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    const Lanes low = (Lanes)(state_ & 0xffffu);
    const Lanes high = (Lanes)(state_ >> 16);
    const Lanes first = (low >= threshold_) & scale_bits_;
    const Lanes second = (high >= threshold_) & scale_bits_;
    std::memcpy(out, &first, sizeof first);
    std::memcpy(out + kLanes, &second, sizeof second);
  }

 private:
  static constexpr int kLanes = 8;
  using Lanes = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));
  using UnsignedLanes = uint32_t __attribute__((vector_size(kLanes * sizeof(uint32_t))));

  static int32_t Dropped(double p) { return static_cast<int32_t>(std::lround(p * 65536)); }

  UnsignedLanes state_{};
  Lanes threshold_{}, scale_bits_{};
};

}  // namespace traind
