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

constexpr int64_t kLanes = 16, kWidth = 2 * kLanes;
constexpr int kRows = 12;  // of a tile, whose sums then just fit into the registers

struct Layer {
  const Bf16* panels;
  const float* bias;
  int64_t out, in;  // in: HalfWidth
};

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

// Writes up to kLanes sums, of which `count` belong to the row.
TRAIND_BF16 inline __attribute__((always_inline)) void Keep(__m512 sums, int64_t count, float* y) {
  const auto mask = static_cast<__mmask16>(count >= kLanes ? 0xffff : (1 << count) - 1);
  _mm512_mask_storeu_ps(y, mask, sums);
}
TRAIND_BF16 inline __attribute__((always_inline)) void Keep(__m512 sums, int64_t count, Bf16* y) {
  const __m512 zero = {};
  Copy(_mm512_cvtneps_pbh(sums <= zero ? zero : sums), count, y);  // a NaN stays a NaN
}

// Computes one tile of y, [rows, stride]: kTall rows of one panel's columns.
template <int kTall, class Y>
TRAIND_BF16 inline __attribute__((always_inline)) void Tile(const Layer& layer, const Bf16* x,
                                                            int64_t begin, int64_t stride, Y* y) {
  const Bf16* panel = layer.panels + begin * layer.in;
  __m512 sums[kTall][2];
#pragma GCC unroll 12
  for (int i = 0; i < kTall; ++i) {
    sums[i][0] = _mm512_loadu_ps(layer.bias + begin);
    sums[i][1] = _mm512_loadu_ps(layer.bias + begin + kLanes);
  }
  for (int64_t k = 0; k < layer.in; k += 2) {
    __m512bh left, right;
    std::memcpy(&left, panel + k * kWidth, sizeof left);
    std::memcpy(&right, panel + k * kWidth + kWidth, sizeof right);
#pragma GCC unroll 12
    for (int i = 0; i < kTall; ++i) {
      const __m512bh two = TwoOf(x + i * layer.in + k);
      sums[i][0] = _mm512_dpbf16_ps(sums[i][0], left, two);
      sums[i][1] = _mm512_dpbf16_ps(sums[i][1], right, two);
    }
  }
  const int64_t count = stride - begin;
#pragma GCC unroll 12
  for (int i = 0; i < kTall; ++i) {
    Y* to = y + i * stride + begin;
    Keep(sums[i][0], count, to);
    if (count > kLanes) Keep(sums[i][1], count - kLanes, to + kLanes);
  }
}

template <class Y>
TRAIND_BF16 void AllTiles(const Layer& layer, const Bf16* x, int64_t rows, int64_t stride, Y* y) {
  int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) {
    for (int64_t begin = 0; begin < layer.out; begin += kWidth) {
      Tile<kRows>(layer, x + row * layer.in, begin, stride, y + row * stride);
    }
  }
  for (; row < rows; ++row) {
    for (int64_t begin = 0; begin < layer.out; begin += kWidth) {
      Tile<1>(layer, x + row * layer.in, begin, stride, y + row * stride);
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
    if (width > columns) to[columns] = Bf16{};
  }
}

void PackedHalfLayer::Pack(const float* weight, const float* bias, int64_t out, int64_t in) {
  out_ = out;
  in_ = HalfWidth(in);
  const int64_t panels = (out + kWidth - 1) / kWidth;
  panels_.assign(static_cast<size_t>(panels * kWidth * in_), Bf16{});
  bias_.assign(static_cast<size_t>(panels * kWidth), 0.0f);
  std::copy_n(bias, out, bias_.data());
  for (int64_t j = 0; j < out; ++j) {
    Bf16* to = panels_.data() + j / kWidth * kWidth * in_ + j % kWidth * 2;
    for (int64_t k = 0; k < in; ++k) Store(to[k / 2 * 2 * kWidth + k % 2], weight[j * in + k]);
  }
}

void PackedHalfLayer::ApplyRelu(const Bf16* x, int64_t rows, Bf16* y) const {
  AllTiles(Layer{panels_.data(), bias_.data(), out_, in_}, x, rows, HalfWidth(out_), y);
}

void PackedHalfLayer::Apply(const Bf16* x, int64_t rows, float* y) const {
  AllTiles(Layer{panels_.data(), bias_.data(), out_, in_}, x, rows, out_, y);
}

#else

bool PackedHalfLayer::Available() { return false; }
void RoundRows(const float*, int64_t, int64_t, Bf16*) {}
void PackedHalfLayer::Pack(const float*, const float*, int64_t, int64_t) {}
void PackedHalfLayer::ApplyRelu(const Bf16*, int64_t, Bf16*) const {}
void PackedHalfLayer::Apply(const Bf16*, int64_t, float*) const {}

#endif

}  // namespace traind
