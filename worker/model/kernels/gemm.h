// Matrix products on plain arrays, by the BLAS and oneDNN that LibTorch brings.
#pragma once

#include <cstdint>

#include "worker/model/kernels/bf16.h"

namespace traind {

// A row-major matrix in memory; `stride` elements from row to row. transposed: the
// product takes its transpose.
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

// c [m, n] = a [m, k] x b [k, n] (+ c, where add). The sizes are those after
// transposing. Threads: safe; runs on as many as SetTorchThreads() allowed.
void Multiply(int64_t m, int64_t n, int64_t k, Matrix<const float> a, Matrix<const float> b,
              float* c, int64_t c_stride, bool add = false);

// Sums in float32, rounded at the end. c is dense. Errors: torch's exceptions.
void Multiply(int64_t m, int64_t n, int64_t k, Matrix<const Bf16> a, Matrix<const Bf16> b, Bf16* c);

}  // namespace traind
