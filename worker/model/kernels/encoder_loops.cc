#include "worker/model/kernels/encoder_loops.h"

#include <cmath>

#include "common/base/target_clones.h"
#include "worker/model/kernels/vector_math.h"

namespace traind {

TRAIND_TARGET_CLONES
void LayerNorm(const float* x, const float* weight, const float* bias, float* y, float* centred,
               float* inverse, int64_t rows, int64_t width) {
  const float share = 1.0f / static_cast<float>(width);
  for (int64_t i = 0; i < rows; ++i, x += width, y += width, centred += width) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < width; ++j) sum += x[j];
    const float mean = sum * share;
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int64_t j = 0; j < width; ++j) squares += (x[j] - mean) * (x[j] - mean);
    const float factor = 1.0f / std::sqrt(squares * share + kNormEpsilon);
    inverse[i] = factor;
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) {
      const float value = (x[j] - mean) * factor;
      centred[j] = value;
      y[j] = value * weight[j] + bias[j];
    }
  }
}

TRAIND_TARGET_CLONES
void LayerNormBackward(const float* dy, const float* centred, const float* inverse,
                       const float* weight, float* dx, float* weight_gradient, float* bias_gradient,
                       int64_t rows, int64_t width) {
  const float share = 1.0f / static_cast<float>(width);
  for (int64_t i = 0; i < rows; ++i, dy += width, dx += width, centred += width) {
    float sum = 0, along = 0;
#pragma omp simd reduction(+ : sum, along)
    for (int64_t j = 0; j < width; ++j) {
      const float scaled = dy[j] * weight[j];
      sum += scaled;
      along += scaled * centred[j];
    }
    sum *= share;
    along *= share;
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) {
      const float d = dy[j];
      weight_gradient[j] += d * centred[j];
      bias_gradient[j] += d;
      dx[j] = inverse[i] * (d * weight[j] - sum - centred[j] * along);
    }
  }
}

TRAIND_TARGET_CLONES
void AddResidual(const float* x, const float* bias, const float* factors, const float* residual,
                 float* out, int64_t rows, int64_t width) {
  for (int64_t i = 0; i < rows; ++i) {
    if (factors == nullptr) {
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) out[j] = residual[j] + x[j] + bias[j];
    } else {
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) out[j] = residual[j] + (x[j] + bias[j]) * factors[j];
      factors += width;
    }
    x += width;
    residual += width;
    out += width;
  }
}

TRAIND_TARGET_CLONES
void Softmax(float scale, float* x, int64_t rows, int64_t width) {
  for (int64_t i = 0; i < rows; ++i, x += width) {
    float most = x[0];
#pragma omp simd reduction(max : most)
    for (int64_t j = 0; j < width; ++j) most = x[j] > most ? x[j] : most;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < width; ++j) {
      x[j] = FastExp(scale * (x[j] - most));
      sum += x[j];
    }
    const float factor = 1.0f / sum;
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) x[j] *= factor;
  }
}

TRAIND_TARGET_CLONES
void SoftmaxBackward(float scale, const float* y, float* d, int64_t rows, int64_t width) {
  for (int64_t i = 0; i < rows; ++i, y += width, d += width) {
    float along = 0;
#pragma omp simd reduction(+ : along)
    for (int64_t j = 0; j < width; ++j) along += y[j] * d[j];
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) d[j] = scale * y[j] * (d[j] - along);
  }
}

TRAIND_TARGET_CLONES
void AddTo(const float* y, float* x, int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) x[i] += y[i];
}

}  // namespace traind
