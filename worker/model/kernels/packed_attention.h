// Multi-head attention within each of several samples of different length, which stand
// one after the other, without padding. Plain, or disentangled as in DeBERTa (He et al.
// 2021): besides q_i . k_j, a score has q_i . K[b] + k_j . Q[b], where K and Q are the
// layer's keys and queries of a table of relative positions and b = bucket of i - j (as
// DeBERTa's published code has it: the same b in both), all divided by sqrt(3 d).
#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <vector>

#include "worker/model/kernels/dense_attention.h"

namespace traind {

// Distances' buckets: near ones have one each, farther ones share more and more of them
// (DeBERTa v2's make_log_bucket_position), the farthest all the last one.
// Threads: immutable.
class RelativeBuckets {
 public:
  // 2 x span buckets, for distances up to most - 1 either way. REQUIRES: span > 1.
  RelativeBuckets(int64_t span, int64_t most);
  int64_t count() const { return 2 * span_; }
  int64_t Of(int64_t distance) const {
    return by_distance_[static_cast<size_t>(distance + most_ - 1)];
  }
  // Of the distances i - j, j = 0 ...: for row i. REQUIRES: i < most.
  const int32_t* Row(int64_t i) const { return descending_.data() + (most_ - 1 - i); }

 private:
  const int64_t span_, most_;
  std::vector<int32_t> by_distance_, descending_;
};

struct PackedShape {
  absl::Span<const int64_t> ends;  // where each sample's rows end
  int64_t width = 0, heads = 0;
  const RelativeBuckets* buckets = nullptr;  // null: plain

  int64_t tokens() const { return ends.empty() ? 0 : ends.back(); }
  // Of all samples' shares: heads x the sum of length^2.
  int64_t shares() const;
};

// Keys and queries of relative positions, [buckets, D].
template <class T>
struct RelativeRows {
  Rows<T> query, key;
};

// mixed [N, D] of queries, keys and values [N, D]. shares: the softmax, sample by sample,
// head by head, [n, n]. factors: of a dropout of the shares, like them; null: none.
// Threads: safe; runs on as many as SetTorchThreads() allowed.
void PackedForward(const PackedShape& shape, Rows<const float> query, Rows<const float> key,
                   Rows<const float> value, RelativeRows<const float> relative,
                   const float* factors, float* shares, Rows<float> mixed);

// The gradients by query, key and value, and (overwritten) by the relative ones, from that
// by mixed.
void PackedBackward(const PackedShape& shape, Rows<const float> query, Rows<const float> key,
                    Rows<const float> value, RelativeRows<const float> relative,
                    const float* factors, const float* shares, Rows<const float> d_mixed,
                    Rows<float> d_query, Rows<float> d_key, Rows<float> d_value,
                    RelativeRows<float> d_relative);

}  // namespace traind
