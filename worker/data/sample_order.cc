#include "worker/data/sample_order.h"

#include <algorithm>
#include <utility>

#include "worker/data/random.h"

namespace traind {

std::vector<int32_t> EpochOrder(absl::Span<const int32_t> rows, uint64_t seed, int fold,
                                int64_t epoch) {
  std::vector<int32_t> order(rows.begin(), rows.end());
  Random random(
      StreamSeed(seed, Stream::kOrder, static_cast<uint64_t>(fold), static_cast<uint64_t>(epoch)));
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  return order;
}

std::vector<int32_t> RankShare(absl::Span<const int32_t> order, int64_t position, int rank,
                               int world_size) {
  std::vector<int32_t> share;
  const int64_t rows = static_cast<int64_t>(order.size());
  share.reserve(static_cast<size_t>(std::max<int64_t>(0, rows - position) / world_size + 1));
  for (int64_t i = position + rank; i < rows; i += world_size) {
    share.push_back(order[static_cast<size_t>(i)]);
  }
  return share;
}

BatchShare ShareOfBatch(int64_t rows, int64_t position, int64_t batch, int rank, int world_size) {
  BatchShare share;
  share.gang_rows = std::max<int64_t>(0, std::min(batch * world_size, rows - position));
  share.rank_rows = (share.gang_rows - rank + world_size - 1) / world_size;
  share.rank_rows = std::max<int64_t>(0, share.rank_rows);
  return share;
}

int64_t RowsLeftOut(int64_t rows, int64_t batch, int world_size) {
  const int64_t gang_batch = batch * world_size;
  const int64_t last = rows % gang_batch;
  return rows > gang_batch && last < 2 * world_size ? last : 0;
}

}  // namespace traind
