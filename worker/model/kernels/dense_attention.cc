#include "worker/model/kernels/dense_attention.h"

#include <cmath>

#include "worker/model/kernels/encoder_loops.h"
#include "worker/model/kernels/gemm.h"
#include "worker/model/kernels/lstm_loops.h"

namespace traind {
namespace {

float ScaleOf(const AttentionShape& shape) {
  return 1.0f / std::sqrt(static_cast<float>(shape.width / shape.heads));
}

// One head of one sample.
template <class T>
Matrix<T> Head(Rows<T> rows, int64_t sample, int64_t steps, int64_t head, int64_t depth) {
  return {rows.data + sample * steps * rows.stride + head * depth, rows.stride, false};
}

template <class T>
Matrix<T> Flip(Matrix<T> matrix) {
  matrix.transposed = !matrix.transposed;
  return matrix;
}

// Returns one head's attention probabilities after dropout: `probabilities` itself without dropout,
// else their product with the factors, in `scratch`.
const float* Dropped(const float* probabilities, const float* factors, int64_t at, int64_t size,
                     float* scratch) {
  if (factors == nullptr) return probabilities;
  Scale(probabilities, factors + at, scratch, size);
  return scratch;
}

}  // namespace

void AttentionForward(const AttentionShape& shape, Rows<const float> query, Rows<const float> key,
                      Rows<const float> value, const float* factors, float* probabilities,
                      float* mixed, std::vector<float>& scratch) {
  const int64_t steps = shape.steps, query_steps = shape.query_steps,
                depth = shape.width / shape.heads;
  const int64_t size = query_steps * steps;
  scratch.resize(static_cast<size_t>(2 * size));
  for (int64_t b = 0; b < shape.batch; ++b) {
    for (int64_t h = 0; h < shape.heads; ++h) {
      const int64_t at = (b * shape.heads + h) * size;
      Multiply(query_steps, steps, depth, Head(query, b, query_steps, h, depth),
               Flip(Head(key, b, steps, h, depth)), probabilities + at, steps);
      Softmax(ScaleOf(shape), probabilities + at, query_steps, steps);
      const float* used = Dropped(probabilities + at, factors, at, size, scratch.data());
      Multiply(query_steps, depth, steps, {used, steps, false}, Head(value, b, steps, h, depth),
               mixed + b * query_steps * shape.width + h * depth, shape.width);
    }
  }
}

void AttentionBackward(const AttentionShape& shape, Rows<const float> query, Rows<const float> key,
                       Rows<const float> value, const float* factors, const float* probabilities,
                       const float* d_mixed, Rows<float> d_query, Rows<float> d_key,
                       Rows<float> d_value, std::vector<float>& scratch) {
  const int64_t steps = shape.steps, query_steps = shape.query_steps,
                depth = shape.width / shape.heads;
  const int64_t size = query_steps * steps;
  scratch.resize(static_cast<size_t>(2 * size));
  float* d = scratch.data() + size;
  for (int64_t b = 0; b < shape.batch; ++b) {
    for (int64_t h = 0; h < shape.heads; ++h) {
      const int64_t at = (b * shape.heads + h) * size;
      const Matrix<const float> d_out{d_mixed + b * query_steps * shape.width + h * depth,
                                      shape.width, false};
      const float* used = Dropped(probabilities + at, factors, at, size, scratch.data());
      Multiply(steps, depth, query_steps, {used, steps, true}, d_out,
               Head(d_value, b, steps, h, depth).data, d_value.stride);
      Multiply(query_steps, steps, depth, d_out, Flip(Head(value, b, steps, h, depth)), d, steps);
      if (factors != nullptr) Scale(d, factors + at, d, size);
      SoftmaxBackward(ScaleOf(shape), probabilities + at, d, query_steps, steps);
      Multiply(query_steps, depth, steps, {d, steps, false}, Head(key, b, steps, h, depth),
               Head(d_query, b, query_steps, h, depth).data, d_query.stride);
      Multiply(steps, depth, query_steps, {d, steps, true}, Head(query, b, query_steps, h, depth),
               Head(d_key, b, steps, h, depth).data, d_key.stride);
    }
  }
}

}  // namespace traind
