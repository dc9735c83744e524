// In which order an epoch visits the training rows, and which of them are whose.
#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <vector>

namespace traind {

// The epoch's permutation of `rows`: depends on (seed, fold, epoch) alone, so
// that every Rank, and a resumed one, makes the same.
std::vector<int32_t> EpochOrder(absl::Span<const int32_t> rows, uint64_t seed, int fold,
                                int64_t epoch);

// One Rank's share of an epoch from `position` in its order on: every
// world_size-th row. Its batch k lies in the gang's batch k; together the Ranks
// visit every row once.
std::vector<int32_t> RankShare(absl::Span<const int32_t> order, int64_t position, int rank,
                               int world_size);

// The gang's batch that starts at `position`: how many of its rows are whose.
struct BatchShare {
  int64_t gang_rows = 0;
  int64_t rank_rows = 0;  // differs by at most 1 between Ranks; may be 0 in the last batch
};
BatchShare ShareOfBatch(int64_t rows, int64_t position, int64_t batch, int rank, int world_size);

}  // namespace traind
