// Attention over packed tokens as an operator of autograd.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/model/kernels/packed_attention.h"

namespace traind {

// Where the tokens of a batch are when all samples are padded to the longest one, of T tokens.
struct PaddedPlaces {
  int64_t samples = 0, longest = 1;
  at::Tensor token;    // [B x T] int64: the token of each step; of padding: the sample's first one
  at::Tensor padding;  // [B, 1, 1, T] bool; undefined: there is none
  at::Tensor step;     // [N] int64: the step of each token
  at::Tensor buckets;  // [T, T] int64: that of i - j; undefined: attention is plain
};
// ends: where the tokens of each sample end. buckets: null for plain attention.
std::shared_ptr<const PaddedPlaces> PadPlaces(const std::vector<int64_t>& ends,
                                              const RelativeBuckets* buckets, c10::Device device);

struct TextAttentionOptions {
  std::vector<int64_t> ends;  // where the tokens of each sample end
  // Made once for all layers, so that each does not wait for copies to a GPU. Null: made anew.
  std::shared_ptr<const PaddedPlaces> places;
  int64_t heads = 1;
  const RelativeBuckets* buckets = nullptr;  // null: plain attention; outlives the backward pass
  int64_t window = 0;                        // a token sees those up to so many places away; 0: all
  double dropout = 0;                        // of the attention probabilities
  uint64_t seed = 0;
};

// What all layers of a network have in common. On a GPU the places are made here.
TextAttentionOptions AttentionOver(const std::vector<int64_t>& ends, int64_t heads,
                                   const RelativeBuckets* buckets, c10::Device device);

// Returns [N, D]. query_key_value: [N, 3 D]. relative: [buckets, 2 D], the queries, then the
// keys, of the relative positions; undefined if attention is plain. On the CPU it runs in
// float32 without padding (PackedForward); on a GPU it is PaddedAttention.
// Threads: as autograd's. Errors: torch's exceptions.
at::Tensor TextAttention(const at::Tensor& query_key_value, const at::Tensor& relative,
                         const TextAttentionOptions& options);

// The same function by ordinary operators, with samples padded to the longest one; plain attention
// by the device's fused kernel. With dropout, other probabilities are dropped.
at::Tensor PaddedAttention(const at::Tensor& query_key_value, const at::Tensor& relative,
                           const TextAttentionOptions& options);

}  // namespace traind
