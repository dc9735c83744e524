#pragma once

#include <cstdint>
#include <vector>

namespace traind {

// The shape of multi-head attention over a batch, in float32. T is the number of time steps, Q
// the number of query steps (the last Q of them), D the width. A row of queries, keys or values
// holds all heads side by side.
struct AttentionShape {
  int64_t batch = 0, steps = 0, query_steps = 0, width = 0, heads = 0;
};

// A matrix [batch x steps, width] that is part of a wider one.
template <class T>
struct Rows {
  T* data = nullptr;
  int64_t stride = 0;  // elements from row to row
};

// For each head: mixed [B x Q, D] = softmax(q k^T / sqrt(D / heads)) v.
// probabilities [B, heads, Q, T] receives the attention probabilities. factors holds dropout
// factors for them in the same shape; null means no dropout. The probabilities after dropout are
// not stored: they are computed again per head, in `scratch`, which fits into a core's own cache.
void AttentionForward(const AttentionShape& shape, Rows<const float> query, Rows<const float> key,
                      Rows<const float> value, const float* factors, float* probabilities,
                      float* mixed, std::vector<float>& scratch);

// Computes the gradients by query, key and value from the gradient by mixed.
void AttentionBackward(const AttentionShape& shape, Rows<const float> query, Rows<const float> key,
                       Rows<const float> value, const float* factors, const float* probabilities,
                       const float* d_mixed, Rows<float> d_query, Rows<float> d_key,
                       Rows<float> d_value, std::vector<float>& scratch);

}  // namespace traind
