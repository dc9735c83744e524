#include "worker/model/kernels/packed_attention.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "worker/model/kernels/encoder_loops.h"
#include "worker/model/kernels/gemm.h"
#include "worker/model/kernels/lstm_loops.h"
#include "worker/model/kernels/relative_loops.h"

namespace traind {
namespace {

int64_t LogBucket(int64_t distance, int64_t span, int64_t most) {
  const int64_t middle = span / 2, far = std::abs(distance);
  if (far <= middle) return distance;
  const double limit = static_cast<double>(std::max(most, span + 1) - 1);
  const double share = std::log(static_cast<double>(far) / static_cast<double>(middle)) /
                       std::log(limit / static_cast<double>(middle));
  const auto bucket =
      static_cast<int64_t>(std::ceil(share * static_cast<double>(middle - 1) - 1e-9)) + middle;
  return distance > 0 ? bucket : -bucket;
}

// The place of a sample: the offsets of its rows and of its attention probabilities.
struct Place {
  int64_t begin = 0, length = 0, probabilities = 0;
};

std::vector<Place> PlacesOf(const PackedShape& shape) {
  std::vector<Place> places;
  places.reserve(shape.ends.size());
  int64_t begin = 0, probabilities = 0;
  for (const int64_t end : shape.ends) {
    places.push_back({begin, end - begin, probabilities});
    probabilities += shape.heads * (end - begin) * (end - begin);
    begin = end;
  }
  return places;
}

template <class T>
Matrix<T> At(Rows<T> rows, int64_t row, int64_t column) {
  return {rows.data + row * rows.stride + column, rows.stride, false};
}

template <class T>
Matrix<T> Flip(Matrix<T> matrix) {
  matrix.transposed = !matrix.transposed;
  return matrix;
}

float ScaleOf(const PackedShape& shape) {
  const auto depth = static_cast<float>(shape.width / shape.heads);
  return 1.0f / std::sqrt(shape.buckets != nullptr ? 3 * depth : depth);
}

float* Grow(std::vector<float>& scratch, int64_t size) {
  if (static_cast<int64_t>(scratch.size()) < size) scratch.resize(static_cast<size_t>(size));
  return scratch.data();
}

// The probability of what is out of sight is 0, and so is its gradient.
void HideFar(int64_t window, int64_t n, float* scores) {
  constexpr float kHidden = -1e30f;
  for (int64_t i = 0; i < n; ++i, scores += n) {
    std::fill(scores, scores + std::max<int64_t>(0, i - window), kHidden);
    std::fill(scores + std::min(n, i + window + 1), scores + n, kHidden);
  }
}

// Calls work(place, scratch) for each sample, on several threads.
template <class Work>
void ForEachSample(const PackedShape& shape, const Work& work) {
  const std::vector<Place> places = PlacesOf(shape);
  at::parallel_for(0, static_cast<int64_t>(places.size()), 1, [&](int64_t from, int64_t to) {
    std::vector<float> scratch;
    for (int64_t i = from; i < to; ++i) work(places[static_cast<size_t>(i)], scratch);
  });
}

}  // namespace

RelativeBuckets::RelativeBuckets(int64_t span, int64_t most, int64_t farthest) : most_(most) {
  for (int64_t distance = 1 - most; distance < most; ++distance) {
    const int64_t bucket = LogBucket(distance, span, farthest) + span;
    by_distance_.push_back(static_cast<int32_t>(std::clamp<int64_t>(bucket, 0, 2 * span - 1)));
  }
  Use(by_distance_.front(), by_distance_.back() - by_distance_.front() + 1);
}

void RelativeBuckets::Use(int64_t begin, int64_t count) {
  for (int32_t& bucket : by_distance_) bucket += static_cast<int32_t>(begin_ - begin);
  descending_.assign(by_distance_.rbegin(), by_distance_.rend());
  begin_ = begin;
  count_ = count;
}

int64_t PackedShape::probability_count() const {
  int64_t begin = 0, sum = 0;
  for (const int64_t end : ends) {
    sum += (end - begin) * (end - begin);
    begin = end;
  }
  return sum * heads;
}

void PackedForward(const PackedShape& shape, Rows<const float> query, Rows<const float> key,
                   Rows<const float> value, RelativeRows<const float> relative,
                   const float* factors, float* probabilities, Rows<float> mixed) {
  const int64_t depth = shape.width / shape.heads;
  const int64_t buckets = shape.buckets != nullptr ? shape.buckets->count() : 0;
  ForEachSample(shape, [&](const Place& place, std::vector<float>& scratch) {
    const int64_t n = place.length, row = place.begin;
    float* const by_query = Grow(scratch, 2 * n * buckets + n * n);  // [n, buckets]
    float* const by_key = by_query + n * buckets;                    // [n, buckets]
    float* const dropped = by_key + n * buckets;                     // [n, n]
    for (int64_t head = 0; head < shape.heads; ++head) {
      const int64_t column = head * depth, at = place.probabilities + head * n * n;
      float* const scores = probabilities + at;
      Multiply(n, n, depth, At(query, row, column), Flip(At(key, row, column)), scores, n);
      if (buckets > 0) {
        Multiply(n, buckets, depth, At(query, row, column), Flip(At(relative.key, 0, column)),
                 by_query, buckets);
        Multiply(n, buckets, depth, At(key, row, column), Flip(At(relative.query, 0, column)),
                 by_key, buckets);
        for (int64_t i = 0; i < n; ++i) {
          AddRelative(by_query + i * buckets, by_key, buckets, shape.buckets->Row(i),
                      scores + i * n, n);
        }
      }
      if (shape.window > 0) HideFar(shape.window, n, scores);
      Softmax(ScaleOf(shape), scores, n, n);
      const float* used = scores;
      if (factors != nullptr) {
        Scale(scores, factors + at, dropped, n * n);
        used = dropped;
      }
      Multiply(n, depth, n, {used, n, false}, At(value, row, column), At(mixed, row, column).data,
               mixed.stride);
    }
  });
}

void PackedBackward(const PackedShape& shape, Rows<const float> query, Rows<const float> key,
                    Rows<const float> value, RelativeRows<const float> relative,
                    const float* factors, const float* probabilities, Rows<const float> d_mixed,
                    Rows<float> d_query, Rows<float> d_key, Rows<float> d_value,
                    RelativeRows<float> d_relative) {
  const int64_t depth = shape.width / shape.heads, tokens = shape.tokens();
  const int64_t buckets = shape.buckets != nullptr ? shape.buckets->count() : 0;
  // The scores' gradients summed by bucket, [heads, N, buckets], for the queries and for the
  // keys.
  std::vector<float> by_query(static_cast<size_t>(shape.heads * tokens * buckets));
  std::vector<float> by_key(by_query.size());
  ForEachSample(shape, [&](const Place& place, std::vector<float>& scratch) {
    const int64_t n = place.length, row = place.begin;
    float* const dropped = Grow(scratch, 2 * n * n);
    float* const d = dropped + n * n;
    for (int64_t head = 0; head < shape.heads; ++head) {
      const int64_t column = head * depth, at = place.probabilities + head * n * n;
      const float* used = probabilities + at;
      if (factors != nullptr) {
        Scale(used, factors + at, dropped, n * n);
        used = dropped;
      }
      const auto by_mixed = At(d_mixed, row, column);
      Multiply(n, depth, n, {used, n, true}, by_mixed, At(d_value, row, column).data,
               d_value.stride);
      Multiply(n, n, depth, by_mixed, Flip(At(value, row, column)), d, n);
      if (factors != nullptr) Scale(d, factors + at, d, n * n);
      SoftmaxBackward(ScaleOf(shape), probabilities + at, d, n, n);
      Multiply(n, depth, n, {d, n, false}, At(key, row, column), At(d_query, row, column).data,
               d_query.stride);
      Multiply(n, depth, n, {d, n, true}, At(query, row, column), At(d_key, row, column).data,
               d_key.stride);
      if (buckets == 0) continue;
      float* const query_sums = by_query.data() + (head * tokens + row) * buckets;
      float* const key_sums = by_key.data() + (head * tokens + row) * buckets;
      for (int64_t i = 0; i < n; ++i) {
        AddRelativeBackward(d + i * n, n, shape.buckets->Row(i), buckets, query_sums + i * buckets,
                            key_sums);
      }
      Multiply(n, depth, buckets, {query_sums, buckets, false}, At(relative.key, 0, column),
               At(d_query, row, column).data, d_query.stride, /*add=*/true);
      Multiply(n, depth, buckets, {key_sums, buckets, false}, At(relative.query, 0, column),
               At(d_key, row, column).data, d_key.stride, /*add=*/true);
    }
  });
  for (int64_t head = 0; head < shape.heads && buckets > 0; ++head) {
    const int64_t column = head * depth, at = head * tokens * buckets;
    Multiply(buckets, depth, tokens, {by_query.data() + at, buckets, true}, At(query, 0, column),
             At(d_relative.key, 0, column).data, d_relative.key.stride);
    Multiply(buckets, depth, tokens, {by_key.data() + at, buckets, true}, At(key, 0, column),
             At(d_relative.query, 0, column).data, d_relative.query.stride);
  }
}

}  // namespace traind
