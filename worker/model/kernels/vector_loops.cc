#include "worker/model/kernels/vector_loops.h"

#include <cmath>

#include "common/base/target_clones.h"

namespace traind {

TRAIND_TARGET_CLONES
double SumOfSquares(const float* values, int64_t size) {
  constexpr int64_t kBlock = 4096;
  double total = 0;
  for (int64_t begin = 0; begin < size; begin += kBlock) {
    const int64_t end = begin + kBlock < size ? begin + kBlock : size;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = begin; i < end; ++i) sum += values[i] * values[i];
    total += static_cast<double>(sum);
  }
  return total;
}

namespace {

// The step's factors are differences of nearly equal numbers, so they are computed in double
// and rounded to float last.
TRAIND_ALWAYS_INLINE float F(double value) { return static_cast<float>(value); }

template <bool kDecoupled>
TRAIND_ALWAYS_INLINE void AdamBody(const AdamStep& s, const float* __restrict__ gradient,
                                   float* __restrict__ weights, float* __restrict__ exp_avg,
                                   float* __restrict__ exp_avg_sq, int64_t size) {
  const float rate = F(s.learning_rate / s.correction1);
  const float root = F(1 / std::sqrt(s.correction2));
  const float keep = kDecoupled ? F(1 - s.learning_rate * s.weight_decay) : 1.0f;
  const float decay = kDecoupled ? 0.0f : F(s.weight_decay);
  const float beta2 = F(s.beta2), rest1 = F(1 - s.beta1), rest2 = F(1 - s.beta2);
  const float scale = F(s.gradient_scale), eps = F(s.eps);
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) {
    const float g = gradient[i] * scale + decay * weights[i];
    const float m = exp_avg[i] + rest1 * (g - exp_avg[i]);
    const float v = beta2 * exp_avg_sq[i] + rest2 * g * g;
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
    weights[i] = keep * weights[i] - rate * m / (std::sqrt(v) * root + eps);
  }
}

}  // namespace

TRAIND_TARGET_CLONES
void AdamLoop(const AdamStep& step, const float* gradient, float* weights, float* exp_avg,
              float* exp_avg_sq, int64_t size) {
  if (step.decoupled) {
    AdamBody<true>(step, gradient, weights, exp_avg, exp_avg_sq, size);
  } else {
    AdamBody<false>(step, gradient, weights, exp_avg, exp_avg_sq, size);
  }
}

TRAIND_TARGET_CLONES
void SgdLoop(const SgdStep& s, const float* gradient, float* weights, float* momentum_buffer,
             int64_t size) {
  const float rate = F(s.learning_rate), decay = F(s.weight_decay), scale = F(s.gradient_scale);
  if (momentum_buffer == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) {
      weights[i] -= rate * (gradient[i] * scale + decay * weights[i]);
    }
    return;
  }
  const float momentum = F(s.momentum);
  const float own = s.nesterov ? 1.0f : 0.0f;
  const float moved = s.nesterov ? momentum : 1.0f;
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) {
    const float g = gradient[i] * scale + decay * weights[i];
    const float buffer = momentum * momentum_buffer[i] + g;
    momentum_buffer[i] = buffer;
    weights[i] -= rate * (own * g + moved * buffer);
  }
}

TRAIND_TARGET_CLONES
void RmsPropLoop(const RmsPropStep& s, const float* gradient, float* weights, float* square_avg,
                 float* momentum_buffer, int64_t size) {
  const float rate = F(s.learning_rate), decay = F(s.weight_decay), scale = F(s.gradient_scale);
  const float alpha = F(s.alpha), rest = F(1 - s.alpha), eps = F(s.eps), momentum = F(s.momentum);
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) {
    const float g = gradient[i] * scale + decay * weights[i];
    const float square = alpha * square_avg[i] + rest * g * g;
    square_avg[i] = square;
    float update = g / (std::sqrt(square) + eps);
    if (momentum_buffer != nullptr) {
      update += momentum * momentum_buffer[i];
      momentum_buffer[i] = update;
    }
    weights[i] -= rate * update;
  }
}

TRAIND_TARGET_CLONES
void EmaLoop(double decay, const float* weights, float* average, int64_t size) {
  const float rest = F(1 - decay);
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) average[i] += rest * (weights[i] - average[i]);
}

}  // namespace traind
