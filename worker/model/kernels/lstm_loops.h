// The element-wise part of an LSTM's time step, forwards and back. Matrices are dense,
// [rows, ...]; gates stand as [rows, 4 x hidden] in the order i, f, g, o.
#pragma once

#include <cstdint>

#include "worker/model/kernels/bf16.h"

namespace traind {

// gates: what comes out of the step's products (their sum, where there are two), and
// becomes sigmoid or tanh of it plus bias [4 x hidden]. c, tanh_c, h: [rows, hidden].
void LstmForward(const float* products, const float* bias, const float* c_before, float* gates,
                 float* c, float* tanh_c, float* h, int64_t rows, int64_t hidden);
// more: the second product, or null.
void LstmForward(const Bf16* products, const Bf16* more, const float* bias, const float* c_before,
                 float* gates, float* c, float* tanh_c, Bf16* h, int64_t rows, int64_t hidden);

// dh: the loss's gradient by h through the next time step, or null; up: through what is
// above the layer, or null. dc: by c, in and out. d: by the products, may be gates'
// memory. bias_gradient [4 x hidden]: added to.
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
