#include "worker/model/kernels/layer_loops.h"

#include "common/base/target_clones.h"
#include "worker/model/kernels/dropout_mask.h"

namespace traind {
namespace {

// A NaN stays a NaN.
TRAIND_ALWAYS_INLINE float Relu(float value) { return !(value <= 0) ? value : 0.0f; }

template <class T>
TRAIND_ALWAYS_INLINE void BiasReluBody(T* __restrict__ x, const float* __restrict__ bias,
                                       int64_t rows, int64_t width) {
  for (int64_t i = 0; i < rows; ++i, x += width) {
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) {
      const float value = Load(x[j]) + bias[j];
      Store(x[j], Relu(value));
    }
  }
}

template <class T>
TRAIND_ALWAYS_INLINE void ApplyMask(T* __restrict__ x, int64_t size, DropoutMask& mask) {
  constexpr int64_t kStep = DropoutMask::kStep;
  float factors[kStep];
  int64_t i = 0;
  for (; i + kStep <= size; i += kStep) {
    mask.Next(factors);
#pragma omp simd
    for (int64_t k = 0; k < kStep; ++k) Store(x[i + k], Load(x[i + k]) * factors[k]);
  }
  mask.Next(factors);
  for (int64_t k = 0; i < size; ++i, ++k) Store(x[i], Load(x[i]) * factors[k]);
}

template <class T>
TRAIND_ALWAYS_INLINE void BiasReluDropoutBody(T* __restrict__ x, const float* __restrict__ bias,
                                              int64_t rows, int64_t width, double p,
                                              uint64_t seed) {
  constexpr int64_t kStep = DropoutMask::kStep;
  DropoutMask mask(p, seed);
  if (width % kStep != 0) {
    BiasReluBody(x, bias, rows, width);
    ApplyMask(x, rows * width, mask);
    return;
  }
  float factors[kStep];
  for (int64_t i = 0; i < rows; ++i, x += width) {
    for (int64_t j = 0; j < width; j += kStep) {
      mask.Next(factors);
#pragma omp simd
      for (int64_t k = 0; k < kStep; ++k) {
        const float value = Load(x[j + k]) + bias[j + k];
        Store(x[j + k], Relu(value) * factors[k]);
      }
    }
  }
}

template <class T>
TRAIND_ALWAYS_INLINE void ReluBackwardBody(const T* __restrict__ activation, float scale,
                                           T* __restrict__ d, float* __restrict__ sums,
                                           int64_t rows, int64_t width) {
  for (int64_t j = 0; j < width; ++j) sums[j] = 0;
  for (int64_t i = 0; i < rows; ++i, d += width, activation += width) {
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) {
      const float value = Load(activation[j]) > 0 ? Load(d[j]) * scale : 0.0f;
      Store(d[j], value);
      sums[j] += value;
    }
  }
}

template <class T>
TRAIND_ALWAYS_INLINE void DotForwardBody(const T* __restrict__ x, const float* __restrict__ weight,
                                         float bias, float* __restrict__ out, int64_t rows,
                                         int64_t width) {
  for (int64_t i = 0; i < rows; ++i, x += width) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < width; ++j) sum += Load(x[j]) * weight[j];
    out[i] = sum + bias;
  }
}

template <class T>
TRAIND_ALWAYS_INLINE void DotBackwardBody(const T* __restrict__ x, const float* __restrict__ weight,
                                          const float* __restrict__ error, float scale,
                                          T* __restrict__ d, float* __restrict__ sums,
                                          float* __restrict__ weight_gradient, int64_t rows,
                                          int64_t width) {
  for (int64_t j = 0; j < width; ++j) sums[j] = weight_gradient[j] = 0;
  for (int64_t i = 0; i < rows; ++i, x += width, d += width) {
    const float e = error[i], scaled = e * scale;
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) {
      const float value = Load(x[j]);
      const float back = value > 0 ? scaled * weight[j] : 0.0f;
      weight_gradient[j] += e * value;
      sums[j] += back;
      Store(d[j], back);
    }
  }
}

}  // namespace

TRAIND_TARGET_CLONES
void DropoutFactors(double p, uint64_t seed, float* out, int64_t size) {
  DropoutMask mask(p, seed);
  for (int64_t i = 0; i < size; i += DropoutMask::kStep) mask.Next(out + i);
}

TRAIND_TARGET_CLONES
void BiasRelu(float* x, const float* bias, int64_t rows, int64_t width) {
  BiasReluBody(x, bias, rows, width);
}
TRAIND_TARGET_CLONES
void BiasRelu(Bf16* x, const float* bias, int64_t rows, int64_t width) {
  BiasReluBody(x, bias, rows, width);
}

TRAIND_TARGET_CLONES
void BiasReluDropout(float* x, const float* bias, int64_t rows, int64_t width, double p,
                     uint64_t seed) {
  BiasReluDropoutBody(x, bias, rows, width, p, seed);
}
TRAIND_TARGET_CLONES
void BiasReluDropout(Bf16* x, const float* bias, int64_t rows, int64_t width, double p,
                     uint64_t seed) {
  BiasReluDropoutBody(x, bias, rows, width, p, seed);
}

TRAIND_TARGET_CLONES
void ReluBackward(const float* activation, float scale, float* d, float* sums, int64_t rows,
                  int64_t width) {
  ReluBackwardBody(activation, scale, d, sums, rows, width);
}
TRAIND_TARGET_CLONES
void ReluBackward(const Bf16* activation, float scale, Bf16* d, float* sums, int64_t rows,
                  int64_t width) {
  ReluBackwardBody(activation, scale, d, sums, rows, width);
}

TRAIND_TARGET_CLONES
void DotForward(const float* x, const float* weight, float bias, float* out, int64_t rows,
                int64_t width) {
  DotForwardBody(x, weight, bias, out, rows, width);
}
TRAIND_TARGET_CLONES
void DotForward(const Bf16* x, const float* weight, float bias, float* out, int64_t rows,
                int64_t width) {
  DotForwardBody(x, weight, bias, out, rows, width);
}

TRAIND_TARGET_CLONES
void DotBackward(const float* x, const float* weight, const float* error, float scale, float* d,
                 float* sums, float* weight_gradient, int64_t rows, int64_t width) {
  DotBackwardBody(x, weight, error, scale, d, sums, weight_gradient, rows, width);
}
TRAIND_TARGET_CLONES
void DotBackward(const Bf16* x, const float* weight, const float* error, float scale, Bf16* d,
                 float* sums, float* weight_gradient, int64_t rows, int64_t width) {
  DotBackwardBody(x, weight, error, scale, d, sums, weight_gradient, rows, width);
}

TRAIND_TARGET_CLONES
void ColumnSums(const float* x, float* sums, int64_t rows, int64_t width) {
  for (int64_t j = 0; j < width; ++j) sums[j] = 0;
  for (int64_t i = 0; i < rows; ++i, x += width) {
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) sums[j] += x[j];
  }
}

TRAIND_TARGET_CLONES
void AddBias(float* x, const float* bias, int64_t rows, int64_t width) {
  for (int64_t i = 0; i < rows; ++i, x += width) {
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) x[j] += bias[j];
  }
}

TRAIND_TARGET_CLONES
void ToBf16(const float* from, Bf16* to, int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) Store(to[i], from[i]);
}

TRAIND_TARGET_CLONES
void ToFloat(const Bf16* from, float* to, int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) to[i] = Load(from[i]);
}

}  // namespace traind
