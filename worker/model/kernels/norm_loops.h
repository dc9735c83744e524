// A norm over the batch, what is added to it and its ReLU, in as few passes over memory as
// there can be. Matrices are dense and row-major, [rows, width]: of images in channels-last
// order a row is a pixel. Values are float32 or bf16, all else float32. Compiled for several
// instruction sets, like vector_loops.h.
#pragma once

#include <cstdint>

#include "worker/model/kernels/bf16.h"

namespace traind {

// y = act(x * factor + offset + add): per column factor and offset; act is a ReLU or
// nothing, and there may be nothing to add (null).
template <class T>
struct NormPass {
  const T* x = nullptr;
  const T* add = nullptr;
  const float* factor = nullptr;
  const float* offset = nullptr;
  bool relu = false;
};

// sums[j] = sum over rows of x - shift, sums[width + j] that of its square. Float sums: meant
// for some thousand rows.
void NormSums(const float* x, const float* shift, float* sums, int64_t rows, int64_t width);
void NormSums(const Bf16* x, const float* shift, float* sums, int64_t rows, int64_t width);

void NormForward(const NormPass<float>& pass, float* y, int64_t rows, int64_t width);
void NormForward(const NormPass<Bf16>& pass, Bf16* y, int64_t rows, int64_t width);

// The way back through act: g = dy where y > 0 (everywhere without a ReLU). sums[j] = sum of
// g, sums[width + j] = sum of g * (x - shift). Where something was added y is read and d_add
// becomes g; else y is made anew from x and neither is used.
void NormBackwardSums(const NormPass<float>& pass, const float* y, const float* dy,
                      const float* shift, float* d_add, float* sums, int64_t rows, int64_t width);
void NormBackwardSums(const NormPass<Bf16>& pass, const Bf16* y, const Bf16* dy, const float* shift,
                      Bf16* d_add, float* sums, int64_t rows, int64_t width);

// dx = g * factor + x * slope + constant, per column. dy: as above, or g itself where
// something was added (pass.add is set; nothing is read there).
void NormBackward(const NormPass<float>& pass, const float* dy, const float* slope,
                  const float* constant, float* dx, int64_t rows, int64_t width);
void NormBackward(const NormPass<Bf16>& pass, const Bf16* dy, const float* slope,
                  const float* constant, Bf16* dx, int64_t rows, int64_t width);

}  // namespace traind
