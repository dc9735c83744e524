// The order in which an epoch visits the training rows, and their division among ranks.
#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <vector>

namespace traind {

// Returns the epoch's permutation of `rows`. It depends only on (seed, fold, epoch), so every
// Rank, also a resumed one, makes the same.
std::vector<int32_t> EpochOrder(absl::Span<const int32_t> rows, uint64_t seed, int fold,
                                int64_t epoch);

// Returns one Rank's rows of an epoch, from `position` in its order on: every world_size-th
// row. A Rank's batch k is part of the gang's batch k, and together the
// Ranks visit every row once.
std::vector<int32_t> RankShare(absl::Span<const int32_t> order, int64_t position, int rank,
                               int world_size);

// The size of the gang's batch that starts at `position`, and of one Rank's part of it.
struct BatchShare {
  int64_t gang_rows = 0;
  int64_t rank_rows = 0;  // differs by at most 1 between Ranks; may be 0 in the last batch
};
BatchShare ShareOfBatch(int64_t rows, int64_t position, int64_t batch, int rank, int world_size);

// Returns how many rows an epoch leaves out at its end so that no Rank's part of the last batch is
// one row. An epoch of a single batch keeps all of them.
int64_t RowsLeftOut(int64_t rows, int64_t batch, int world_size);

}  // namespace traind
