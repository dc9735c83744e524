#include "worker/model/kernels/gelu_loops.h"

#include <algorithm>

#include "common/base/target_clones.h"
#include "worker/model/kernels/vector_math.h"

namespace traind {
namespace {

template <class T>
TRAIND_ALWAYS_INLINE void BiasGeluBody(T* __restrict__ x, const float* __restrict__ bias,
                                       T* __restrict__ slope, int64_t rows, int64_t width) {
  constexpr float kInverseRoot2 = 0.70710678f, kInverseRoot2Pi = 0.39894228f;
  for (int64_t i = 0; i < rows; ++i, x += width, slope += width) {
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) {
      const float u = Load(x[j]) + bias[j];
      const float z = __builtin_fabsf(u) * kInverseRoot2;
      const float t = 1.0f / (1.0f + 0.3275911f * z);
      float p = 1.061405429f;
      p = p * t - 1.453152027f;
      p = p * t + 1.421413741f;
      p = p * t - 0.284496736f;
      p = p * t + 0.254829592f;
      const float power = FastExp(-z * z);
      const float tail = 0.5f * p * t * power;  // of the normal distribution
      const float share = u < 0 ? tail : 1.0f - tail;
      Store(x[j], u * share);
      Store(slope[j], share + u * kInverseRoot2Pi * power);
    }
  }
}

template <class T>
TRAIND_ALWAYS_INLINE void ScaleByBody(const float* __restrict__ factors, T* __restrict__ x,
                                      int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) Store(x[i], Load(x[i]) * factors[i]);
}

template <class T>
TRAIND_ALWAYS_INLINE void GeluBackwardBody(const T* __restrict__ slope, T* __restrict__ d,
                                           float* __restrict__ sums, int64_t rows, int64_t width) {
  for (int64_t j = 0; j < width; ++j) sums[j] = 0;
  for (int64_t i = 0; i < rows; ++i, slope += width, d += width) {
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) {
      const float value = Load(d[j]) * Load(slope[j]);
      sums[j] += value;
      Store(d[j], value);
    }
  }
}

template <class T>
TRAIND_ALWAYS_INLINE void AddBiasBody(const T* x, const float* bias, float* out, int64_t rows,
                                      int64_t width) {
  for (int64_t i = 0; i < rows; ++i, x += width, out += width) {
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) out[j] = Load(x[j]) + bias[j];
  }
}

template <class T>
TRAIND_ALWAYS_INLINE void AddResidualBody(const T* x, const float* bias, const float* factors,
                                          const float* residual, float* out, int64_t rows,
                                          int64_t width) {
  for (int64_t i = 0; i < rows; ++i) {
    if (factors == nullptr) {
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) out[j] = residual[j] + Load(x[j]) + bias[j];
    } else {
#pragma omp simd
      for (int64_t j = 0; j < width; ++j)
        out[j] = residual[j] + (Load(x[j]) + bias[j]) * factors[j];
      factors += width;
    }
    x += width;
    residual += width;
    out += width;
  }
}

template <class T>
TRAIND_ALWAYS_INLINE void CopyScaledBody(const float* from, const float* factors, T* to,
                                         int64_t size) {
  if (factors == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) Store(to[i], from[i]);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) Store(to[i], from[i] * factors[i]);
  }
}

}  // namespace

TRAIND_TARGET_CLONES
void BiasGelu(float* x, const float* bias, float* slope, int64_t rows, int64_t width) {
  BiasGeluBody(x, bias, slope, rows, width);
}
TRAIND_TARGET_CLONES
void BiasGelu(Bf16* x, const float* bias, Bf16* slope, int64_t rows, int64_t width) {
  BiasGeluBody(x, bias, slope, rows, width);
}

TRAIND_TARGET_CLONES
void ScaleBy(const float* factors, float* x, int64_t size) { ScaleByBody(factors, x, size); }
TRAIND_TARGET_CLONES
void ScaleBy(const float* factors, Bf16* x, int64_t size) { ScaleByBody(factors, x, size); }

TRAIND_TARGET_CLONES
void GeluBackward(const float* slope, float* d, float* sums, int64_t rows, int64_t width) {
  GeluBackwardBody(slope, d, sums, rows, width);
}
TRAIND_TARGET_CLONES
void GeluBackward(const Bf16* slope, Bf16* d, float* sums, int64_t rows, int64_t width) {
  GeluBackwardBody(slope, d, sums, rows, width);
}

TRAIND_TARGET_CLONES
void AddBiasTo(const float* x, const float* bias, float* out, int64_t rows, int64_t width) {
  AddBiasBody(x, bias, out, rows, width);
}
TRAIND_TARGET_CLONES
void AddBiasTo(const Bf16* x, const float* bias, float* out, int64_t rows, int64_t width) {
  AddBiasBody(x, bias, out, rows, width);
}

TRAIND_TARGET_CLONES
void AddResidualTo(const float* x, const float* bias, const float* factors, const float* residual,
                   float* out, int64_t rows, int64_t width) {
  AddResidualBody(x, bias, factors, residual, out, rows, width);
}
TRAIND_TARGET_CLONES
void AddResidualTo(const Bf16* x, const float* bias, const float* factors, const float* residual,
                   float* out, int64_t rows, int64_t width) {
  AddResidualBody(x, bias, factors, residual, out, rows, width);
}

TRAIND_TARGET_CLONES
void CopyScaled(const float* from, const float* factors, float* to, int64_t size) {
  CopyScaledBody(from, factors, to, size);
}
TRAIND_TARGET_CLONES
void CopyScaled(const float* from, const float* factors, Bf16* to, int64_t size) {
  CopyScaledBody(from, factors, to, size);
}
TRAIND_TARGET_CLONES
void CopyTo(const Bf16* from, float* to, int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) to[i] = Load(from[i]);
}

}  // namespace traind
