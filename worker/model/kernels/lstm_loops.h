// Element-wise loops of an LSTM's time step, forward and backward. Matrices are dense, [rows,
// ...]. Gates are stored as [rows, 4 x hidden] in the order i, f, g, o.
#pragma once

#include <cstdint>

#include "worker/model/kernels/bf16.h"

namespace traind {

// products is the sum of the step's matrix products. gates receives the sigmoid or tanh of
// products plus bias [4 x hidden]. c, tanh_c, h: [rows, hidden].
void LstmForward(const float* products, const float* bias, const float* c_before, float* gates,
                 float* c, float* tanh_c, float* h, int64_t rows, int64_t hidden);
// more: the step's second product, or null if `products` already is the sum.
void LstmForward(const Bf16* products, const Bf16* more, const float* bias, const float* c_before,
                 float* gates, float* c, float* tanh_c, Bf16* h, int64_t rows, int64_t hidden);

// dh: the loss's gradient by h that comes from the next time step, or null. up: the gradient by
// h that comes from the layer above, or null. dc: the gradient by c, updated in place. d
// receives the gradient by the products and may share the memory of gates. Adds to
// bias_gradient [4 x hidden].
void LstmBackward(const float* gates, const float* c_before, const float* tanh_c, const float* dh,
                  const float* up, float* dc, float* d, float* bias_gradient, int64_t rows,
                  int64_t hidden);
void LstmBackward(const float* gates, const float* c_before, const float* tanh_c, const Bf16* dh,
                  const Bf16* up, float* dc, Bf16* d, float* bias_gradient, int64_t rows,
                  int64_t hidden);

// out = x * factors
void Scale(const float* x, const float* factors, float* out, int64_t size);
void Scale(const Bf16* x, const float* factors, Bf16* out, int64_t size);

}  // namespace traind
