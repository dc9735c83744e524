#pragma once

#include <cstdint>
#include <vector>

namespace traind {

// Multi-head attention of a batch, float32. T: steps, Q: steps that ask (the last ones),
// D: width. A row of queries, keys or values has all heads side by side.
struct AttentionShape {
  int64_t batch = 0, steps = 0, asking = 0, width = 0, heads = 0;
};

// A matrix [batch x steps, width] inside a wider one.
template <class T>
struct Rows {
  T* data = nullptr;
  int64_t stride = 0;  // elements from row to row
};

// mixed [B x Q, D] = softmax(q k^T / sqrt(D / heads)) v for each head. shares
// [B, heads, Q, T]: the softmax. factors: of a dropout of the shares, like them; null:
// none. What it leaves of them is made again where it is needed, head by head, in a
// core's own cache. room: for that.
void AttentionForward(const AttentionShape& shape, Rows<const float> query, Rows<const float> key,
                      Rows<const float> value, const float* factors, float* shares, float* mixed,
                      std::vector<float>& room);

// The gradients by query, key and value, from that by mixed.
void AttentionBackward(const AttentionShape& shape, Rows<const float> query, Rows<const float> key,
                       Rows<const float> value, const float* factors, const float* shares,
                       const float* d_mixed, Rows<float> d_query, Rows<float> d_key,
                       Rows<float> d_value, std::vector<float>& room);

}  // namespace traind
