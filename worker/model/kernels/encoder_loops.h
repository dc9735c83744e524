// Element-wise loops of a Transformer layer, between its matrix products. Matrices are dense
// and row-major, float32. Compiled for several instruction sets, like vector_loops.h.
#pragma once

#include <cstdint>

namespace traind {

// The default of torch.nn.LayerNorm.
inline constexpr float kNormEpsilon = 1e-5f;

// For each row: y = (x - mean) / sqrt(variance + epsilon) x weight + bias. centred receives y
// before weight and bias, inverse [rows] receives 1 / sqrt(...). y may be x.
void LayerNorm(const float* x, const float* weight, const float* bias, float* y, float* centred,
               float* inverse, int64_t rows, int64_t width);
// dx receives the loss's gradient by x, computed from dy, the gradient by y; dx may be dy. Adds
// to weight_gradient and bias_gradient [width].
void LayerNormBackward(const float* dy, const float* centred, const float* inverse,
                       const float* weight, float* dx, float* weight_gradient, float* bias_gradient,
                       int64_t rows, int64_t width);

// out = residual + (x + bias) * factors. Null factors mean 1. out may be x.
void AddResidual(const float* x, const float* bias, const float* factors, const float* residual,
                 float* out, int64_t rows, int64_t width);

// Replaces x with softmax(scale * x), row by row.
void Softmax(float scale, float* x, int64_t rows, int64_t width);
// y = softmax(scale * x). d holds the gradient by y and becomes the gradient by x.
void SoftmaxBackward(float scale, const float* y, float* d, int64_t rows, int64_t width);

// x[i] += y[i]
void AddTo(const float* y, float* x, int64_t size);

}  // namespace traind
