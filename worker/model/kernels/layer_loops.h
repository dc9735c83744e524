// Element-wise loops of the handwritten passes, between their matrix products. Each runs over
// its data once. Matrices are dense and row-major, [rows, width]; values are float32 or bf16,
// sums are float32. Compiled for several instruction sets, like vector_loops.h.
#pragma once

#include <cstdint>

#include "worker/model/kernels/bf16.h"

namespace traind {

// Writes dropout factors for `size` elements (see DropoutMask). out has room for `size` rounded
// up to a multiple of DropoutMask::kStep.
void DropoutFactors(double p, uint64_t seed, float* out, int64_t size);

// x = relu(x + bias)
void BiasRelu(float* x, const float* bias, int64_t rows, int64_t width);
void BiasRelu(Bf16* x, const float* bias, int64_t rows, int64_t width);
// x = dropout(relu(x + bias)), with the mask of `seed`.
void BiasReluDropout(float* x, const float* bias, int64_t rows, int64_t width, double p,
                     uint64_t seed);
void BiasReluDropout(Bf16* x, const float* bias, int64_t rows, int64_t width, double p,
                     uint64_t seed);
// Backward pass: d becomes d x scale where activation > 0, else 0. sums receives its column
// sums.
void ReluBackward(const float* activation, float scale, float* d, float* sums, int64_t rows,
                  int64_t width);
void ReluBackward(const Bf16* activation, float scale, Bf16* d, float* sums, int64_t rows,
                  int64_t width);

// A layer with one output: out[i] = x[i] . weight + bias.
void DotForward(const float* x, const float* weight, float bias, float* out, int64_t rows,
                int64_t width);
void DotForward(const Bf16* x, const float* weight, float bias, float* out, int64_t rows,
                int64_t width);
// Backward pass of DotForward and of the ReLU (and dropout, see ReluBackward) that made x.
// error [rows] is the loss's gradient by out. d receives the gradient by the input of the ReLU,
// sums its column sums, weight_gradient the gradient by the weight.
void DotBackward(const float* x, const float* weight, const float* error, float scale, float* d,
                 float* sums, float* weight_gradient, int64_t rows, int64_t width);
void DotBackward(const Bf16* x, const float* weight, const float* error, float scale, Bf16* d,
                 float* sums, float* weight_gradient, int64_t rows, int64_t width);

void ColumnSums(const float* x, float* sums, int64_t rows, int64_t width);
void AddBias(float* x, const float* bias, int64_t rows, int64_t width);

void ToBf16(const float* from, Bf16* to, int64_t size);
void ToFloat(const Bf16* from, float* to, int64_t size);

}  // namespace traind
