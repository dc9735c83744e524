#include "worker/model/kernels/gemm.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

// The BLAS that libtorch_cpu exports. It is column-major and takes 32-bit sizes.
extern "C" void sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
                       const int* k, const float* alpha, const float* a, const int* lda,
                       const float* b, const int* ldb, const float* beta, float* c, const int* ldc);

namespace traind {
namespace {

at::Tensor View(Matrix<const Bf16> matrix, int64_t rows, int64_t columns) {
  const std::vector<int64_t> strides = matrix.transposed ? std::vector<int64_t>{1, matrix.stride}
                                                         : std::vector<int64_t>{matrix.stride, 1};
  // The tensor is only read, but from_blob has no overload for const data.
  return at::from_blob(const_cast<Bf16*>(matrix.data), {rows, columns}, strides, at::kBFloat16);
}

}  // namespace

void Multiply(int64_t m, int64_t n, int64_t k, Matrix<const float> a, Matrix<const float> b,
              float* c, int64_t c_stride, bool add) {
  if (m == 0 || n == 0) return;
  // A row-major a x b is a column-major b^T x a^T, so nothing needs to be moved.
  const char ta = a.transposed ? 'T' : 'N', tb = b.transposed ? 'T' : 'N';
  const int rows = static_cast<int>(n), columns = static_cast<int>(m), depth = static_cast<int>(k);
  const int lda = static_cast<int>(std::max<int64_t>(1, a.stride));
  const int ldb = static_cast<int>(std::max<int64_t>(1, b.stride));
  const int ldc = static_cast<int>(c_stride);
  const float one = 1, beta = add ? 1 : 0;
  sgemm_(&tb, &ta, &rows, &columns, &depth, &one, b.data, &ldb, a.data, &lda, &beta, c, &ldc);
}

void Multiply(int64_t m, int64_t n, int64_t k, Matrix<const Bf16> a, Matrix<const Bf16> b,
              Bf16* c) {
  if (m == 0 || n == 0) return;
  const c10::InferenceMode inference;
  at::Tensor out = at::from_blob(c, {m, n}, at::TensorOptions().dtype(at::kBFloat16));
  at::mm_out(out, View(a, m, k), View(b, k, n));
}

}  // namespace traind
