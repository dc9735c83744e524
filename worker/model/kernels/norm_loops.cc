#include "worker/model/kernels/norm_loops.h"

#include "common/base/target_clones.h"

namespace traind {
namespace {

// Rows processed together, so that the values of a column are loaded once for all of them.
constexpr int64_t kRows = 8;

// A NaN stays a NaN.
template <bool kRelu>
TRAIND_ALWAYS_INLINE float Act(float value) {
  return !kRelu || !(value <= 0) ? value : 0.0f;
}

template <int64_t kCount, class T>
TRAIND_ALWAYS_INLINE void SumRows(const T* __restrict__ x, const float* __restrict__ shift,
                                  float* __restrict__ sums, float* __restrict__ squares,
                                  int64_t width) {
#pragma omp simd
  for (int64_t j = 0; j < width; ++j) {
    float sum = 0, square = 0;
#pragma GCC unroll 8
    for (int64_t k = 0; k < kCount; ++k) {
      const float value = Load(x[k * width + j]) - shift[j];
      sum += value;
      square += value * value;
    }
    sums[j] += sum;
    squares[j] += square;
  }
}

template <class T>
TRAIND_ALWAYS_INLINE void SumsBody(const T* x, const float* shift, float* sums, int64_t rows,
                                   int64_t width) {
  for (int64_t j = 0; j < 2 * width; ++j) sums[j] = 0;
  int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) {
    SumRows<kRows>(x + row * width, shift, sums, sums + width, width);
  }
  for (; row < rows; ++row) SumRows<1>(x + row * width, shift, sums, sums + width, width);
}

template <int64_t kCount, bool kRelu, bool kAdd, class T>
TRAIND_ALWAYS_INLINE void ForwardRows(const T* __restrict__ x, const T* __restrict__ add,
                                      const float* __restrict__ factor,
                                      const float* __restrict__ offset, T* __restrict__ y,
                                      int64_t width) {
#pragma omp simd
  for (int64_t j = 0; j < width; ++j) {
#pragma GCC unroll 8
    for (int64_t k = 0; k < kCount; ++k) {
      float value = Load(x[k * width + j]) * factor[j] + offset[j];
      if (kAdd) value += Load(add[k * width + j]);
      Store(y[k * width + j], Act<kRelu>(value));
    }
  }
}

template <bool kRelu, bool kAdd, class T>
TRAIND_ALWAYS_INLINE void ForwardBody(const NormPass<T>& pass, T* y, int64_t rows, int64_t width) {
  int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) {
    const int64_t at = row * width;
    ForwardRows<kRows, kRelu, kAdd>(pass.x + at, pass.add + at, pass.factor, pass.offset, y + at,
                                    width);
  }
  for (; row < rows; ++row) {
    const int64_t at = row * width;
    ForwardRows<1, kRelu, kAdd>(pass.x + at, pass.add + at, pass.factor, pass.offset, y + at,
                                width);
  }
}

// The gradient after passing back through act, at row k and column j.
template <bool kRelu, bool kAdd>
TRAIND_ALWAYS_INLINE float Passed(float dy, float y_or_x, float factor, float offset) {
  if (!kRelu) return dy;
  const float y = kAdd ? y_or_x : y_or_x * factor + offset;
  return y > 0 ? dy : 0.0f;
}

template <int64_t kCount, bool kRelu, bool kAdd, class T>
TRAIND_ALWAYS_INLINE void BackwardSumsRows(const T* __restrict__ x, const T* __restrict__ y,
                                           const T* __restrict__ dy,
                                           const float* __restrict__ factor,
                                           const float* __restrict__ offset,
                                           const float* __restrict__ shift, T* __restrict__ d_add,
                                           float* __restrict__ sums, float* __restrict__ products,
                                           int64_t width) {
#pragma omp simd
  for (int64_t j = 0; j < width; ++j) {
    float sum = 0, product = 0;
#pragma GCC unroll 8
    for (int64_t k = 0; k < kCount; ++k) {
      const int64_t at = k * width + j;
      const float value = Load(x[at]);
      const float g = Passed<kRelu, kAdd>(Load(dy[at]), kAdd && kRelu ? Load(y[at]) : value,
                                          factor[j], offset[j]);
      if (kAdd) Store(d_add[at], g);
      sum += g;
      product += g * (value - shift[j]);
    }
    sums[j] += sum;
    products[j] += product;
  }
}

template <bool kRelu, bool kAdd, class T>
TRAIND_ALWAYS_INLINE void BackwardSumsBody(const NormPass<T>& pass, const T* y, const T* dy,
                                           const float* shift, T* d_add, float* sums, int64_t rows,
                                           int64_t width) {
  for (int64_t j = 0; j < 2 * width; ++j) sums[j] = 0;
  int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) {
    const int64_t at = row * width;
    BackwardSumsRows<kRows, kRelu, kAdd>(pass.x + at, y + at, dy + at, pass.factor, pass.offset,
                                         shift, d_add + at, sums, sums + width, width);
  }
  for (; row < rows; ++row) {
    const int64_t at = row * width;
    BackwardSumsRows<1, kRelu, kAdd>(pass.x + at, y + at, dy + at, pass.factor, pass.offset, shift,
                                     d_add + at, sums, sums + width, width);
  }
}

template <int64_t kCount, bool kRelu, class T>
TRAIND_ALWAYS_INLINE void BackwardRows(const T* __restrict__ x, const T* __restrict__ dy,
                                       const float* __restrict__ factor,
                                       const float* __restrict__ offset,
                                       const float* __restrict__ slope,
                                       const float* __restrict__ constant, T* __restrict__ dx,
                                       int64_t width) {
#pragma omp simd
  for (int64_t j = 0; j < width; ++j) {
#pragma GCC unroll 8
    for (int64_t k = 0; k < kCount; ++k) {
      const int64_t at = k * width + j;
      const float value = Load(x[at]);
      const float g = Passed<kRelu, false>(Load(dy[at]), value, factor[j], offset[j]);
      Store(dx[at], g * factor[j] + (value * slope[j] + constant[j]));
    }
  }
}

template <bool kRelu, class T>
TRAIND_ALWAYS_INLINE void BackwardBody(const NormPass<T>& pass, const T* dy, const float* slope,
                                       const float* constant, T* dx, int64_t rows, int64_t width) {
  int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) {
    const int64_t at = row * width;
    BackwardRows<kRows, kRelu>(pass.x + at, dy + at, pass.factor, pass.offset, slope, constant,
                               dx + at, width);
  }
  for (; row < rows; ++row) {
    const int64_t at = row * width;
    BackwardRows<1, kRelu>(pass.x + at, dy + at, pass.factor, pass.offset, slope, constant, dx + at,
                           width);
  }
}

template <class T>
TRAIND_ALWAYS_INLINE void ForwardCases(const NormPass<T>& pass, T* y, int64_t rows, int64_t width) {
  if (pass.add != nullptr) {
    if (pass.relu) return ForwardBody<true, true>(pass, y, rows, width);
    return ForwardBody<false, true>(pass, y, rows, width);
  }
  if (pass.relu) return ForwardBody<true, false>(pass, y, rows, width);
  ForwardBody<false, false>(pass, y, rows, width);
}

template <class T>
TRAIND_ALWAYS_INLINE void BackwardSumsCases(const NormPass<T>& pass, const T* y, const T* dy,
                                            const float* shift, T* d_add, float* sums, int64_t rows,
                                            int64_t width) {
  if (pass.add != nullptr) {
    if (pass.relu) {
      return BackwardSumsBody<true, true>(pass, y, dy, shift, d_add, sums, rows, width);
    }
    return BackwardSumsBody<false, true>(pass, y, dy, shift, d_add, sums, rows, width);
  }
  if (pass.relu) {
    return BackwardSumsBody<true, false>(pass, y, dy, shift, d_add, sums, rows, width);
  }
  BackwardSumsBody<false, false>(pass, y, dy, shift, d_add, sums, rows, width);
}

template <class T>
TRAIND_ALWAYS_INLINE void BackwardCases(const NormPass<T>& pass, const T* dy, const float* slope,
                                        const float* constant, T* dx, int64_t rows, int64_t width) {
  // If something was added, dy already is the gradient before act.
  if (pass.relu && pass.add == nullptr) {
    return BackwardBody<true>(pass, dy, slope, constant, dx, rows, width);
  }
  BackwardBody<false>(pass, dy, slope, constant, dx, rows, width);
}

}  // namespace

TRAIND_TARGET_CLONES void NormSums(const float* x, const float* shift, float* sums, int64_t rows,
                                   int64_t width) {
  SumsBody(x, shift, sums, rows, width);
}
TRAIND_TARGET_CLONES void NormSums(const Bf16* x, const float* shift, float* sums, int64_t rows,
                                   int64_t width) {
  SumsBody(x, shift, sums, rows, width);
}

TRAIND_TARGET_CLONES void NormForward(const NormPass<float>& pass, float* y, int64_t rows,
                                      int64_t width) {
  ForwardCases(pass, y, rows, width);
}
TRAIND_TARGET_CLONES void NormForward(const NormPass<Bf16>& pass, Bf16* y, int64_t rows,
                                      int64_t width) {
  ForwardCases(pass, y, rows, width);
}

TRAIND_TARGET_CLONES void NormBackwardSums(const NormPass<float>& pass, const float* y,
                                           const float* dy, const float* shift, float* d_add,
                                           float* sums, int64_t rows, int64_t width) {
  BackwardSumsCases(pass, y, dy, shift, d_add, sums, rows, width);
}
TRAIND_TARGET_CLONES void NormBackwardSums(const NormPass<Bf16>& pass, const Bf16* y,
                                           const Bf16* dy, const float* shift, Bf16* d_add,
                                           float* sums, int64_t rows, int64_t width) {
  BackwardSumsCases(pass, y, dy, shift, d_add, sums, rows, width);
}

TRAIND_TARGET_CLONES void NormBackward(const NormPass<float>& pass, const float* dy,
                                       const float* slope, const float* constant, float* dx,
                                       int64_t rows, int64_t width) {
  BackwardCases(pass, dy, slope, constant, dx, rows, width);
}
TRAIND_TARGET_CLONES void NormBackward(const NormPass<Bf16>& pass, const Bf16* dy,
                                       const float* slope, const float* constant, Bf16* dx,
                                       int64_t rows, int64_t width) {
  BackwardCases(pass, dy, slope, constant, dx, rows, width);
}

}  // namespace traind
