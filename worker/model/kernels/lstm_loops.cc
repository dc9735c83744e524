#include "worker/model/kernels/lstm_loops.h"

#include "common/base/target_clones.h"
#include "worker/model/kernels/vector_math.h"

namespace traind {
namespace {

template <bool kMore, class T>
TRAIND_ALWAYS_INLINE void ForwardBody(const T* products, const T* more, const float* bias,
                                      const float* c_before, float* gates, float* c, float* tanh_c,
                                      T* h, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) {
      float in = Load(products[j]) + bias[j];
      float forget = Load(products[n + j]) + bias[n + j];
      float cell = Load(products[2 * n + j]) + bias[2 * n + j];
      float out = Load(products[3 * n + j]) + bias[3 * n + j];
      if (kMore) {
        in += Load(more[j]);
        forget += Load(more[n + j]);
        cell += Load(more[2 * n + j]);
        out += Load(more[3 * n + j]);
      }
      in = FastSigmoid(in);
      forget = FastSigmoid(forget);
      cell = FastTanh(cell);
      out = FastSigmoid(out);
      const float now = forget * c_before[j] + in * cell;
      const float squashed = FastTanh(now);
      gates[j] = in;
      gates[n + j] = forget;
      gates[2 * n + j] = cell;
      gates[3 * n + j] = out;
      c[j] = now;
      tanh_c[j] = squashed;
      Store(h[j], out * squashed);
    }
    products += 4 * n;
    if (kMore) more += 4 * n;
    gates += 4 * n;
    c_before += n;
    c += n;
    tanh_c += n;
    h += n;
  }
}

template <bool kNext, bool kUp, class T>
TRAIND_ALWAYS_INLINE void BackwardBody(const float* gates, const float* c_before,
                                       const float* tanh_c, const T* dh, const T* up, float* dc,
                                       T* d, float* bias_gradient, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) {
      const float in = gates[j], forget = gates[n + j];
      const float cell = gates[2 * n + j], out = gates[3 * n + j];
      const float squashed = tanh_c[j];
      float by_h = 0;
      if (kNext) by_h += Load(dh[j]);
      if (kUp) by_h += Load(up[j]);
      const float by_c = dc[j] + by_h * out * (1 - squashed * squashed);
      const float by_in = by_c * cell * in * (1 - in);
      const float by_forget = by_c * c_before[j] * forget * (1 - forget);
      const float by_cell = by_c * in * (1 - cell * cell);
      const float by_out = by_h * squashed * out * (1 - out);
      dc[j] = by_c * forget;
      Store(d[j], by_in);
      Store(d[n + j], by_forget);
      Store(d[2 * n + j], by_cell);
      Store(d[3 * n + j], by_out);
      bias_gradient[j] += by_in;
      bias_gradient[n + j] += by_forget;
      bias_gradient[2 * n + j] += by_cell;
      bias_gradient[3 * n + j] += by_out;
    }
    gates += 4 * n;
    d += 4 * n;
    c_before += n;
    tanh_c += n;
    if (kNext) dh += n;
    if (kUp) up += n;
    dc += n;
  }
}

template <class T>
TRAIND_ALWAYS_INLINE void BackwardOf(const float* gates, const float* c_before, const float* tanh_c,
                                     const T* dh, const T* up, float* dc, T* d,
                                     float* bias_gradient, int64_t rows, int64_t n) {
  if (dh != nullptr && up != nullptr) {
    BackwardBody<true, true>(gates, c_before, tanh_c, dh, up, dc, d, bias_gradient, rows, n);
  } else if (dh != nullptr) {
    BackwardBody<true, false>(gates, c_before, tanh_c, dh, up, dc, d, bias_gradient, rows, n);
  } else if (up != nullptr) {
    BackwardBody<false, true>(gates, c_before, tanh_c, dh, up, dc, d, bias_gradient, rows, n);
  } else {
    BackwardBody<false, false>(gates, c_before, tanh_c, dh, up, dc, d, bias_gradient, rows, n);
  }
}

}  // namespace

TRAIND_TARGET_CLONES
void LstmForward(const float* products, const float* bias, const float* c_before, float* gates,
                 float* c, float* tanh_c, float* h, int64_t rows, int64_t hidden) {
  ForwardBody<false>(products, static_cast<const float*>(nullptr), bias, c_before, gates, c, tanh_c,
                     h, rows, hidden);
}

TRAIND_TARGET_CLONES
void LstmForward(const Bf16* products, const Bf16* more, const float* bias, const float* c_before,
                 float* gates, float* c, float* tanh_c, Bf16* h, int64_t rows, int64_t hidden) {
  if (more == nullptr) {
    ForwardBody<false>(products, more, bias, c_before, gates, c, tanh_c, h, rows, hidden);
  } else {
    ForwardBody<true>(products, more, bias, c_before, gates, c, tanh_c, h, rows, hidden);
  }
}

TRAIND_TARGET_CLONES
void LstmBackward(const float* gates, const float* c_before, const float* tanh_c, const float* dh,
                  const float* up, float* dc, float* d, float* bias_gradient, int64_t rows,
                  int64_t hidden) {
  BackwardOf(gates, c_before, tanh_c, dh, up, dc, d, bias_gradient, rows, hidden);
}

TRAIND_TARGET_CLONES
void LstmBackward(const float* gates, const float* c_before, const float* tanh_c, const Bf16* dh,
                  const Bf16* up, float* dc, Bf16* d, float* bias_gradient, int64_t rows,
                  int64_t hidden) {
  BackwardOf(gates, c_before, tanh_c, dh, up, dc, d, bias_gradient, rows, hidden);
}

TRAIND_TARGET_CLONES
void Scale(const float* x, const float* factors, float* out, int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) out[i] = x[i] * factors[i];
}
TRAIND_TARGET_CLONES
void Scale(const Bf16* x, const float* factors, Bf16* out, int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) Store(out[i], Load(x[i]) * factors[i]);
}

}  // namespace traind
