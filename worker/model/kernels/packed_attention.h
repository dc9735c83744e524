// Multi-head attention within each of several samples of different lengths, which are stored
// one after the other without padding. It is either plain or disentangled as in DeBERTa (He et
// al. 2021). Disentangled: a score is q_i . k_j + q_i . K[b] + k_j . Q[b], divided by sqrt(3
// d), where K and Q are the layer's keys and queries of a table of relative positions, and b is
// the bucket of i - j. Both terms use the same b, as DeBERTa's published code does.
#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <vector>

#include "worker/model/kernels/dense_attention.h"

namespace traind {

// Maps distances to buckets: each short distance has its own bucket, longer distances share
// more and more of them (make_log_bucket_position of DeBERTa v2), and the
// longest all use the last one.
// Threads: immutable.
class RelativeBuckets {
 public:
  // Makes 2 x span buckets for distances up to most - 1 in either direction.
  // REQUIRES: span > 1.
  RelativeBuckets(int64_t span, int64_t most) : RelativeBuckets(span, most, most) {
    Use(0, 2 * span);
  }
  // Only those buckets of 2 x span that distances up to most - 1 need, where all from farthest - 1
  // on share the last one.
  RelativeBuckets(int64_t span, int64_t most, int64_t farthest);
  int64_t begin() const { return begin_; }  // of the 2 x span buckets, the first one in use
  int64_t count() const { return count_; }
  // From 0 to count() - 1.
  int64_t BucketOf(int64_t distance) const {
    return by_distance_[static_cast<size_t>(distance + most_ - 1)];
  }
  // The buckets of row i, those of the distances i - j for j = 0, 1, ...
  // REQUIRES: i < most.
  const int32_t* Row(int64_t i) const { return descending_.data() + (most_ - 1 - i); }

 private:
  void Use(int64_t begin, int64_t count);

  const int64_t most_;
  int64_t begin_ = 0, count_ = 0;
  std::vector<int32_t> by_distance_, descending_;
};

struct PackedShape {
  absl::Span<const int64_t> ends;  // where the rows of each sample end
  int64_t width = 0, heads = 0;
  const RelativeBuckets* buckets = nullptr;  // null: plain attention
  int64_t window = 0;                        // a token sees those up to so many places away; 0: all

  int64_t tokens() const { return ends.empty() ? 0 : ends.back(); }
  // Number of attention probabilities of all samples: heads x the sum of length^2.
  int64_t probability_count() const;
};

// The keys and queries of the relative positions, [buckets, D].
template <class T>
struct RelativeRows {
  Rows<T> query, key;
};

// Computes mixed [N, D] from queries, keys and values [N, D]. probabilities receives the attention
// probabilities: sample by sample and head by head, [n, n]. factors holds dropout factors for
// them in the same layout; null means no dropout.
// Threads: safe; uses as many threads as SetTorchThreads() allows.
void PackedForward(const PackedShape& shape, Rows<const float> query, Rows<const float> key,
                   Rows<const float> value, RelativeRows<const float> relative,
                   const float* factors, float* probabilities, Rows<float> mixed);

// Computes the gradients by query, key and value from the gradient by mixed. Overwrites
// d_relative with the gradients by the relative keys and queries.
void PackedBackward(const PackedShape& shape, Rows<const float> query, Rows<const float> key,
                    Rows<const float> value, RelativeRows<const float> relative,
                    const float* factors, const float* probabilities, Rows<const float> d_mixed,
                    Rows<float> d_query, Rows<float> d_key, Rows<float> d_value,
                    RelativeRows<float> d_relative);

}  // namespace traind
