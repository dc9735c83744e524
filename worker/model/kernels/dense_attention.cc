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

// A head of a sample.
template <class T>
Matrix<T> Head(Rows<T> rows, int64_t sample, int64_t steps, int64_t head, int64_t depth) {
  return {rows.data + sample * steps * rows.stride + head * depth, rows.stride, false};
}

template <class T>
Matrix<T> Flip(Matrix<T> matrix) {
  matrix.transposed = !matrix.transposed;
  return matrix;
}

// Of a head's shares, after the dropout: in room, or as they are without one.
const float* Dropped(const float* shares, const float* factors, int64_t at, int64_t size,
                     float* room) {
  if (factors == nullptr) return shares;
  Scale(shares, factors + at, room, size);
  return room;
}

}  // namespace

void AttentionForward(const AttentionShape& shape, Rows<const float> query, Rows<const float> key,
                      Rows<const float> value, const float* factors, float* shares, float* mixed,
                      std::vector<float>& room) {
  const int64_t steps = shape.steps, asking = shape.asking, depth = shape.width / shape.heads;
  const int64_t size = asking * steps;
  room.resize(static_cast<size_t>(2 * size));
  for (int64_t b = 0; b < shape.batch; ++b) {
    for (int64_t h = 0; h < shape.heads; ++h) {
      const int64_t at = (b * shape.heads + h) * size;
      Multiply(asking, steps, depth, Head(query, b, asking, h, depth),
               Flip(Head(key, b, steps, h, depth)), shares + at, steps);
      Softmax(ScaleOf(shape), shares + at, asking, steps);
      const float* used = Dropped(shares + at, factors, at, size, room.data());
      Multiply(asking, depth, steps, {used, steps, false}, Head(value, b, steps, h, depth),
               mixed + b * asking * shape.width + h * depth, shape.width);
    }
  }
}

void AttentionBackward(const AttentionShape& shape, Rows<const float> query, Rows<const float> key,
                       Rows<const float> value, const float* factors, const float* shares,
                       const float* d_mixed, Rows<float> d_query, Rows<float> d_key,
                       Rows<float> d_value, std::vector<float>& room) {
  const int64_t steps = shape.steps, asking = shape.asking, depth = shape.width / shape.heads;
  const int64_t size = asking * steps;
  room.resize(static_cast<size_t>(2 * size));
  float* d = room.data() + size;
  for (int64_t b = 0; b < shape.batch; ++b) {
    for (int64_t h = 0; h < shape.heads; ++h) {
      const int64_t at = (b * shape.heads + h) * size;
      const Matrix<const float> d_out{d_mixed + b * asking * shape.width + h * depth, shape.width,
                                      false};
      const float* used = Dropped(shares + at, factors, at, size, room.data());
      Multiply(steps, depth, asking, {used, steps, true}, d_out,
               Head(d_value, b, steps, h, depth).data, d_value.stride);
      Multiply(asking, steps, depth, d_out, Flip(Head(value, b, steps, h, depth)), d, steps);
      if (factors != nullptr) Scale(d, factors + at, d, size);
      SoftmaxBackward(ScaleOf(shape), shares + at, d, asking, steps);
      Multiply(asking, depth, steps, {d, steps, false}, Head(key, b, steps, h, depth),
               Head(d_query, b, asking, h, depth).data, d_query.stride);
      Multiply(steps, depth, asking, {d, steps, true}, Head(query, b, asking, h, depth),
               Head(d_key, b, steps, h, depth).data, d_key.stride);
    }
  }
}

}  // namespace traind
