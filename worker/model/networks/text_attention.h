// Attention over packed tokens as an operator of autograd.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "worker/model/kernels/packed_attention.h"

namespace traind {

struct TextAttentionOptions {
  std::vector<int64_t> ends;  // where the tokens of each sample end
  int64_t heads = 1;
  const RelativeBuckets* buckets = nullptr;  // null: plain attention; outlives the backward pass
  int64_t window = 0;                        // a token sees those up to so many places away; 0: all
  double dropout = 0;                        // of the attention probabilities
  uint64_t seed = 0;
};

// Returns [N, D]. query_key_value: [N, 3 D]. relative: [buckets, 2 D], the queries, then the
// keys, of the relative positions; undefined if attention is plain. On the CPU it runs in
// float32 without padding (PackedForward); on a GPU it is PaddedAttention.
// Threads: as autograd's. Errors: torch's exceptions.
at::Tensor TextAttention(const at::Tensor& query_key_value, const at::Tensor& relative,
                         const TextAttentionOptions& options);

// The same function by ordinary operators, with samples padded to the longest one.
at::Tensor PaddedAttention(const at::Tensor& query_key_value, const at::Tensor& relative,
                           const TextAttentionOptions& options);

}  // namespace traind
