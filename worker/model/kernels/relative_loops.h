// The relative-position terms of disentangled attention scores. Compiled for several
// instruction sets, like vector_loops.h.
#pragma once

#include <cstdint>

namespace traind {

// For one query's row: scores[j] += by_query[b[j]] + by_key[j][b[j]]. by_query: [buckets];
// by_key: [n, buckets]; b: [n].
void AddRelative(const float* by_query, const float* by_key, int64_t buckets, const int32_t* b,
                 float* scores, int64_t n);
// Backward pass: by_query[b[j]] += d[j], by_key[j][b[j]] += d[j].
void AddRelativeBackward(const float* d, int64_t n, const int32_t* b, int64_t buckets,
                         float* by_query, float* by_key);

}  // namespace traind
