#include "worker/model/kernels/relative_loops.h"

#include "common/base/target_clones.h"

namespace traind {

TRAIND_TARGET_CLONES
void AddRelative(const float* by_query, const float* by_key, int64_t buckets, const int32_t* b,
                 float* scores, int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) scores[j] += by_query[b[j]] + by_key[j * buckets + b[j]];
}

TRAIND_TARGET_CLONES
void AddRelativeBackward(const float* d, int64_t n, const int32_t* b, int64_t buckets,
                         float* by_query, float* by_key) {
  for (int64_t j = 0; j < n; ++j) by_query[b[j]] += d[j];
  for (int64_t j = 0; j < n; ++j) by_key[j * buckets + b[j]] += d[j];
}

}  // namespace traind
