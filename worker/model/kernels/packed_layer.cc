#include "worker/model/kernels/packed_layer.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "common/base/target_clones.h"

#if defined(__x86_64__)
#define TRAIND_TARGET(isa) __attribute__((target(isa)))
#else
#define TRAIND_TARGET(isa)
#endif

namespace traind {
namespace {

using Eight = float __attribute__((vector_size(32)));
using Sixteen = float __attribute__((vector_size(64)));

struct Layer {
  const float *panels, *bias;
  int64_t out, in;
  bool relu;
};

// Computes one tile of y: kRows rows of one panel's columns. The sums stay in registers until
// the tile is done.
template <class Vector, int kRows>
TRAIND_ALWAYS_INLINE void Tile(const Layer& layer, const float* x, int64_t begin, float* y) {
  constexpr int64_t kLanes = sizeof(Vector) / sizeof(float), kWidth = 2 * kLanes;
  const float* panel = layer.panels + begin * layer.in;
  Vector left_bias, right_bias, sums[kRows][2];
  std::memcpy(&left_bias, layer.bias + begin, sizeof left_bias);
  std::memcpy(&right_bias, layer.bias + begin + kLanes, sizeof right_bias);
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) {
    sums[i][0] = left_bias;
    sums[i][1] = right_bias;
  }
  for (int64_t k = 0; k < layer.in; ++k) {
    Vector left, right;
    std::memcpy(&left, panel + k * kWidth, sizeof left);
    std::memcpy(&right, panel + k * kWidth + kLanes, sizeof right);
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      const float value = x[i * layer.in + k];
      sums[i][0] += left * value;
      sums[i][1] += right * value;
    }
  }
  const int64_t count = std::min(kWidth, layer.out - begin);
  const float least = layer.relu ? 0 : -std::numeric_limits<float>::infinity();
  const Vector floor = Vector{} + least;
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) {
    // Written so that a NaN stays a NaN.
    const Vector left = sums[i][0] <= floor ? floor : sums[i][0];
    const Vector right = sums[i][1] <= floor ? floor : sums[i][1];
    float* to = y + i * layer.out + begin;
    if (count == kWidth) {
      std::memcpy(to, &left, sizeof left);
      std::memcpy(to + kLanes, &right, sizeof right);
    } else {
      const Vector both[2] = {left, right};
      std::memcpy(to, both, static_cast<size_t>(count) * sizeof(float));
    }
  }
}

// kRows rows of x stay in the first-level cache while the panels pass by.
template <class Vector, int kRows>
TRAIND_ALWAYS_INLINE void AllTiles(const Layer& layer, const float* x, int64_t rows, float* y) {
  constexpr int64_t kWidth = 2 * sizeof(Vector) / sizeof(float);
  int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) {
    for (int64_t begin = 0; begin < layer.out; begin += kWidth) {
      Tile<Vector, kRows>(layer, x + row * layer.in, begin, y + row * layer.out);
    }
  }
  for (; row < rows; ++row) {
    for (int64_t begin = 0; begin < layer.out; begin += kWidth) {
      Tile<Vector, 1>(layer, x + row * layer.in, begin, y + row * layer.out);
    }
  }
}

TRAIND_TARGET("avx2,fma")
void ApplyAvx2(const Layer& layer, const float* x, int64_t rows, float* y) {
  AllTiles<Eight, 6>(layer, x, rows, y);
}

TRAIND_TARGET("avx512f")
void ApplyAvx512(const Layer& layer, const float* x, int64_t rows, float* y) {
  AllTiles<Sixteen, 12>(layer, x, rows, y);
}

bool Has512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") != 0;
#else
  return false;
#endif
}

int64_t PanelWidth() { return Has512() ? 32 : 16; }

}  // namespace

bool PackedLayer::Available() {
#if defined(__x86_64__)
  return Has512() || (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0);
#else
  return false;
#endif
}

void PackedLayer::Pack(const float* weight, const float* bias, int64_t out, int64_t in) {
  const int64_t width = PanelWidth(), panels = (out + width - 1) / width;
  out_ = out;
  in_ = in;
  panels_.assign(static_cast<size_t>(panels * width * in), 0.0f);
  bias_.assign(static_cast<size_t>(panels * width), 0.0f);
  std::copy_n(bias, out, bias_.data());
  for (int64_t j = 0; j < out; ++j) {
    float* to = panels_.data() + j / width * width * in + j % width;
    for (int64_t k = 0; k < in; ++k) to[k * width] = weight[j * in + k];
  }
}

void PackedLayer::Apply(const float* x, int64_t rows, bool relu, float* y) const {
  const Layer layer{panels_.data(), bias_.data(), out_, in_, relu};
  Has512() ? ApplyAvx512(layer, x, rows, y) : ApplyAvx2(layer, x, rows, y);
}

}  // namespace traind
