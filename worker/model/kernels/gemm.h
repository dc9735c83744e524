// Matrix products of plain arrays, computed by LibTorch's BLAS and oneDNN.
#pragma once

#include <cstdint>

#include "worker/model/kernels/bf16.h"

namespace traind {

// A row-major matrix in memory, with `stride` elements from row to row. transposed: the product
// uses its transpose.
template <class T>
struct Matrix {
  T* data = nullptr;
  int64_t stride = 0;
  bool transposed = false;
};
template <class T>
Matrix<T> Plain(T* data, int64_t stride) {
  return {data, stride, false};
}
template <class T>
Matrix<T> Transposed(T* data, int64_t stride) {
  return {data, stride, true};
}

// c [m, n] = a [m, k] x b [k, n]; with add, c += a x b. Sizes are those after transposing.
// Threads: safe; uses as many threads as SetTorchThreads() allows.
void Multiply(int64_t m, int64_t n, int64_t k, Matrix<const float> a, Matrix<const float> b,
              float* c, int64_t c_stride, bool add = false);

// Sums in float32 and rounds at the end. c is dense. Errors: torch's exceptions.
void Multiply(int64_t m, int64_t n, int64_t k, Matrix<const Bf16> a, Matrix<const Bf16> b, Bf16* c);

}  // namespace traind
