#include "worker/model/kernels/packed_half_layer.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace traind {

#if defined(__x86_64__)
namespace {

// Target options of its own: the rest of the program runs on any processor.
#define TRAIND_BF16 __attribute__((target("avx512f,avx512bw,avx512bf16")))

constexpr int64_t kLanes = 16;
constexpr int kRows = 12;  // of a block, whose sums then just fit into the registers

TRAIND_BF16 inline __attribute__((always_inline)) __m512bh TwoOf(const Bf16* x) {
  int32_t pair;
  std::memcpy(&pair, x, sizeof pair);
  const __m512i all = _mm512_set1_epi32(pair);
  __m512bh out;
  std::memcpy(&out, &all, sizeof out);
  return out;
}

// Copies up to kLanes values.
TRAIND_BF16 inline __attribute__((always_inline)) void Copy(__m256bh values, int64_t count,
                                                            Bf16* to) {
  if (count >= kLanes) {
    std::memcpy(&to->bits, &values, sizeof values);
  } else {
    std::memcpy(&to->bits, &values, static_cast<size_t>(count) * sizeof(Bf16));
  }
}

// Writes a panel's sums of one row, of which `count` belong to it.
TRAIND_BF16 inline __attribute__((always_inline)) void Keep(const __m512* sums, int64_t count,
                                                            float* y) {
  for (int64_t i = 0; i < 2 && count > 0; ++i, count -= kLanes, y += kLanes) {
    const auto mask = static_cast<__mmask16>(count >= kLanes ? 0xffff : (1 << count) - 1);
    _mm512_mask_storeu_ps(y, mask, sums[i]);
  }
}
TRAIND_BF16 inline __attribute__((always_inline)) void Keep(const __m512* sums, int64_t /*count*/,
                                                            Bf16* y) {
  const __m512 zero = {};
  for (int64_t i = 0; i < 2; ++i) {  // a NaN stays a NaN
    Copy(_mm512_cvtneps_pbh(sums[i] <= zero ? zero : sums[i]), kLanes, y + i * kLanes);
  }
}

// Computes kTall rows of one panel's columns.
template <int kTall, class Y>
TRAIND_BF16 inline __attribute__((always_inline)) void Block(const HalfPanels& layer, int64_t used,
                                                             const Bf16* x, int64_t begin,
                                                             int64_t stride, Y* y) {
  const Bf16* panel = layer.weights + begin * layer.in;
  __m512 sums[kTall][2];
#pragma GCC unroll 12
  for (int i = 0; i < kTall; ++i) {
    sums[i][0] = _mm512_loadu_ps(layer.bias + begin);
    sums[i][1] = _mm512_loadu_ps(layer.bias + begin + kLanes);
  }
  for (int64_t k = 0; k < used; k += 2) {
    __m512bh left, right;
    std::memcpy(&left, panel + k * kHalfPanel, sizeof left);
    std::memcpy(&right, panel + k * kHalfPanel + kHalfPanel, sizeof right);
#pragma GCC unroll 12
    for (int i = 0; i < kTall; ++i) {
      const __m512bh two = TwoOf(x + i * layer.in + k);
      sums[i][0] = _mm512_dpbf16_ps(sums[i][0], left, two);
      sums[i][1] = _mm512_dpbf16_ps(sums[i][1], right, two);
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < kTall; ++i) Keep(sums[i], layer.out - begin, y + i * stride + begin);
}

template <class Y>
TRAIND_BF16 void AllBlocks(const HalfPanels& layer, int64_t used, const Bf16* x, int64_t rows,
                           int64_t stride, Y* y) {
  int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) {
    for (int64_t begin = 0; begin < layer.out; begin += kHalfPanel) {
      Block<kRows>(layer, used, x + row * layer.in, begin, stride, y + row * stride);
    }
  }
  for (; row < rows; ++row) {
    for (int64_t begin = 0; begin < layer.out; begin += kHalfPanel) {
      Block<1>(layer, used, x + row * layer.in, begin, stride, y + row * stride);
    }
  }
}

}  // namespace

bool PackedHalfLayer::Available() { return __builtin_cpu_supports("avx512bf16") != 0; }

TRAIND_BF16 void RoundRows(const float* x, int64_t rows, int64_t columns, Bf16* to) {
  const int64_t width = HalfWidth(columns);
  for (int64_t row = 0; row < rows; ++row, x += columns, to += width) {
    for (int64_t k = 0; k < columns; k += kLanes) {
      const int64_t count = std::min(kLanes, columns - k);
      const auto mask = static_cast<__mmask16>((1 << count) - 1);
      Copy(_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, x + k)), count, to + k);
    }
    std::fill(to + columns, to + width, Bf16{});
  }
}

HalfKernel PackedHalfLayer::Best() {
  return HasHalfTiles() ? HalfKernel::kTiles : HalfKernel::kVectors;
}

void PackedHalfLayer::Pack(const float* weight, const float* bias, int64_t out, int64_t in) {
  out_ = out;
  in_ = HalfWidth(in);
  used_ = in + in % 2;
  weights_.resize(static_cast<size_t>(HalfWidth(out) * in_));
  bias_.assign(static_cast<size_t>(HalfWidth(out)), 0.0f);
  std::copy_n(bias, out, bias_.data());
  std::vector<Bf16> inputs(static_cast<size_t>(in_));  // of one output
  for (int64_t j = 0; j < HalfWidth(out); ++j) {
    if (j < out) {
      RoundRows(weight + j * in, 1, in, inputs.data());
    } else {
      std::fill(inputs.begin(), inputs.end(), Bf16{});
    }
    Bf16* to = weights_.data() + j / kHalfPanel * kHalfPanel * in_ + j % kHalfPanel * 2;
    for (int64_t k = 0; k < in_; k += 2, to += 2 * kHalfPanel) {
      std::memcpy(to, inputs.data() + k, 2 * sizeof(Bf16));
    }
  }
}

void PackedHalfLayer::ApplyRelu(const Bf16* x, int64_t rows, Bf16* y) const {
  if (kernel_ == HalfKernel::kTiles) return TilesRelu(panels(), x, rows, y);
  AllBlocks(panels(), used_, x, rows, HalfWidth(out_), y);
}

void PackedHalfLayer::Apply(const Bf16* x, int64_t rows, float* y) const {
  if (kernel_ == HalfKernel::kTiles) return Tiles(panels(), x, rows, y);
  AllBlocks(panels(), used_, x, rows, out_, y);
}

#else

bool PackedHalfLayer::Available() { return false; }
HalfKernel PackedHalfLayer::Best() { return HalfKernel::kVectors; }
void RoundRows(const float*, int64_t, int64_t, Bf16*) {}
void PackedHalfLayer::Pack(const float*, const float*, int64_t, int64_t) {}
void PackedHalfLayer::ApplyRelu(const Bf16*, int64_t, Bf16*) const {}
void PackedHalfLayer::Apply(const Bf16*, int64_t, float*) const {}

#endif

}  // namespace traind
