// A batch norm, a residual added to it and a ReLU, in as few passes over memory as possible.
// Matrices are dense and row-major, [rows, width]: for images in channels-last order a row is a
// pixel. Values are float32 or bf16, everything else is float32. Compiled for several
// instruction sets, like vector_loops.h.
#pragma once

#include <cstdint>

#include "worker/model/kernels/bf16.h"

namespace traind {

// y = act(x * factor + offset + add), with factor and offset per column. act is a ReLU or the
// identity; `add` is null if nothing is added.
template <class T>
struct NormPass {
  const T* x = nullptr;
  const T* add = nullptr;
  const float* factor = nullptr;
  const float* offset = nullptr;
  bool relu = false;
};

// sums[j] receives the sum over rows of x - shift, sums[width + j] the sum of its square. Sums
// are float32, so this is meant for a few thousand rows.
void NormSums(const float* x, const float* shift, float* sums, int64_t rows, int64_t width);
void NormSums(const Bf16* x, const float* shift, float* sums, int64_t rows, int64_t width);

void NormForward(const NormPass<float>& pass, float* y, int64_t rows, int64_t width);
void NormForward(const NormPass<Bf16>& pass, Bf16* y, int64_t rows, int64_t width);

// Backward pass through act: g = dy where y > 0 (everywhere if there is no ReLU). sums[j]
// receives the sum of g, sums[width + j] the sum of g * (x - shift). If something was added, y
// is read and d_add receives g. Otherwise y is computed again from x, and
// neither y nor d_add is used.
void NormBackwardSums(const NormPass<float>& pass, const float* y, const float* dy,
                      const float* shift, float* d_add, float* sums, int64_t rows, int64_t width);
void NormBackwardSums(const NormPass<Bf16>& pass, const Bf16* y, const Bf16* dy, const float* shift,
                      Bf16* d_add, float* sums, int64_t rows, int64_t width);

// dx = g * factor + x * slope + constant, per column. dy is the same as above; if something was
// added (pass.add is not null, but is not read), dy already is g.
void NormBackward(const NormPass<float>& pass, const float* dy, const float* slope,
                  const float* constant, float* dx, int64_t rows, int64_t width);
void NormBackward(const NormPass<Bf16>& pass, const Bf16* dy, const float* slope,
                  const float* constant, Bf16* dx, int64_t rows, int64_t width);

}  // namespace traind
