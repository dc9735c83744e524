// GELU and residual loops between the matrix products of a text encoder. Matrices are dense and
// row-major; values are float32 or bf16. Compiled for several instruction sets, like
// vector_loops.h.
#pragma once

#include <cstdint>

#include "worker/model/kernels/bf16.h"

namespace traind {

// With u = x + bias: x becomes gelu(u), slope receives its derivative at u. This is the exact
// GELU, not the tanh approximation; erf is accurate to 1.5e-7 (Abramowitz, Stegun 7.1.26).
void BiasGelu(float* x, const float* bias, float* slope, int64_t rows, int64_t width);
void BiasGelu(Bf16* x, const float* bias, Bf16* slope, int64_t rows, int64_t width);

// x *= factors
void ScaleBy(const float* factors, float* x, int64_t size);
void ScaleBy(const float* factors, Bf16* x, int64_t size);

// d *= slope; sums receives the column sums of the result.
void GeluBackward(const float* slope, float* d, float* sums, int64_t rows, int64_t width);
void GeluBackward(const Bf16* slope, Bf16* d, float* sums, int64_t rows, int64_t width);

// out = x + bias
void AddBiasTo(const float* x, const float* bias, float* out, int64_t rows, int64_t width);
void AddBiasTo(const Bf16* x, const float* bias, float* out, int64_t rows, int64_t width);

// out = residual + (x + bias) * factors. Null factors mean 1. out may be residual.
void AddResidualTo(const float* x, const float* bias, const float* factors, const float* residual,
                   float* out, int64_t rows, int64_t width);
void AddResidualTo(const Bf16* x, const float* bias, const float* factors, const float* residual,
                   float* out, int64_t rows, int64_t width);

// to = from * factors. Null factors mean 1.
void CopyScaled(const float* from, const float* factors, float* to, int64_t size);
void CopyScaled(const float* from, const float* factors, Bf16* to, int64_t size);
// to = from
void CopyTo(const Bf16* from, float* to, int64_t size);

}  // namespace traind
