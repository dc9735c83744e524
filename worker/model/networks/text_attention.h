// Attention over packed tokens as an operator of autograd.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "worker/model/kernels/packed_attention.h"

namespace traind {

struct TextAttentionOptions {
  std::vector<int64_t> ends;  // of the samples
  int64_t heads = 1;
  const RelativeBuckets* buckets = nullptr;  // null: plain; outlives the backward pass
  double dropout = 0;                        // of the shares
  uint64_t seed = 0;
};

// [N, D] of query_key_value [N, 3 D] and relative [buckets, 2 D]: queries, then keys, of
// the relative positions; undefined where attention is plain. On the CPU without padding
// (PackedForward), in float32; on a GPU as PaddedAttention.
// Threads: as autograd's. Errors: torch's exceptions.
at::Tensor TextAttention(const at::Tensor& query_key_value, const at::Tensor& relative,
                         const TextAttentionOptions& options);

// The same by ordinary operators, over samples padded to the longest one.
at::Tensor PaddedAttention(const at::Tensor& query_key_value, const at::Tensor& relative,
                           const TextAttentionOptions& options);

}  // namespace traind
