#include "worker/data/sample_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

namespace traind {
namespace {

std::vector<int32_t> Rows(int32_t count) {
  std::vector<int32_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), 100);
  return rows;
}

TEST(SampleOrderTest, AnEpochVisitsEveryRowOnce) {
  const auto rows = Rows(997);
  auto order = EpochOrder(rows, 7, 2, 5);
  EXPECT_NE(order, rows);
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, rows);
}

TEST(SampleOrderTest, TheOrderDependsOnSeedFoldAndEpochAlone) {
  const auto rows = Rows(50);
  EXPECT_EQ(EpochOrder(rows, 7, 2, 5), EpochOrder(rows, 7, 2, 5));
  EXPECT_NE(EpochOrder(rows, 7, 2, 5), EpochOrder(rows, 8, 2, 5));
  EXPECT_NE(EpochOrder(rows, 7, 2, 5), EpochOrder(rows, 7, 3, 5));
  EXPECT_NE(EpochOrder(rows, 7, 2, 5), EpochOrder(rows, 7, 2, 6));
}

// Recorded once. A change here would change every training run since the first release.
TEST(SampleOrderTest, TheOrderIsTheOneThatItAlwaysWas) {
  EXPECT_EQ(EpochOrder(Rows(8), 7, 0, 0),
            (std::vector<int32_t>{101, 102, 104, 107, 105, 106, 100, 103}));
}

// Counts which row comes first, over 600 orders of 6 rows.
TEST(SampleOrderTest, EveryRowComesFirstAboutEquallyOften) {
  std::vector<int> first(6);
  for (int epoch = 0; epoch < 600; ++epoch) {
    ++first[static_cast<size_t>(EpochOrder(Rows(6), 1, 0, epoch)[0] - 100)];
  }
  for (const int count : first) {
    EXPECT_GT(count, 60);
    EXPECT_LT(count, 140);
  }
}

// Walks over an epoch as a gang does, from `position` on: every batch of every rank.
void CheckGang(int64_t rows, int64_t position, int64_t batch, int world_size) {
  const auto order = EpochOrder(Rows(static_cast<int32_t>(rows)), 3, 0, 0);
  std::vector<std::vector<int32_t>> shares;
  for (int rank = 0; rank < world_size; ++rank) {
    shares.push_back(RankShare(order, position, rank, world_size));
  }
  std::vector<int64_t> used(static_cast<size_t>(world_size));
  std::multiset<int32_t> seen;
  int64_t at = position;
  while (at < rows) {
    const int64_t expected = std::min(batch * world_size, rows - at);
    int64_t together = 0, least = batch, most = 0;
    for (int rank = 0; rank < world_size; ++rank) {
      const BatchShare share = ShareOfBatch(rows, at, batch, rank, world_size);
      ASSERT_EQ(share.gang_rows, expected);
      const size_t r = static_cast<size_t>(rank);
      for (int64_t i = 0; i < share.rank_rows; ++i) {
        const int32_t row = shares[r][static_cast<size_t>(used[r]++)];
        seen.insert(row);
        // The row is part of the gang's batch, for any number of ranks.
        const auto place = std::find(order.begin(), order.end(), row) - order.begin();
        ASSERT_GE(place, at);
        ASSERT_LT(place, at + expected);
      }
      together += share.rank_rows;
      least = std::min(least, share.rank_rows);
      most = std::max(most, share.rank_rows);
    }
    ASSERT_EQ(together, expected);
    ASSERT_LE(most - least, 1);
    at += expected;
  }
  EXPECT_EQ(static_cast<int64_t>(seen.size()), rows - position);
  EXPECT_EQ(std::set<int32_t>(seen.begin(), seen.end()).size(), seen.size());
}

TEST(SampleOrderTest, RanksShareAnEpochWithoutOverlapOrGap) {
  for (const int world_size : {1, 2, 3, 7}) {
    for (const int64_t rows : {1, 2, 50, 101}) {
      CheckGang(rows, 0, 8, world_size);
      CheckGang(rows, rows / 3, 8, world_size);
    }
  }
}

TEST(SampleOrderTest, NoRankHasASingleRowOfTheLastBatchOnceRowsAreLeftOut) {
  for (const int world_size : {1, 2, 3}) {
    for (int64_t rows = 1; rows <= 60; ++rows) {
      const int64_t batch = 8, gang_batch = batch * world_size;
      const int64_t left_out = RowsLeftOut(rows, batch, world_size);
      const int64_t kept = rows - left_out;
      EXPECT_LT(left_out, 2 * world_size);
      ASSERT_GT(kept, 0);
      if (rows <= gang_batch) {
        EXPECT_EQ(left_out, 0);
        continue;
      }
      const int64_t last = (kept - 1) / gang_batch * gang_batch;
      for (int rank = 0; rank < world_size; ++rank) {
        EXPECT_GE(ShareOfBatch(kept, last, batch, rank, world_size).rank_rows, 2)
            << rows << " rows, " << world_size << " ranks";
      }
    }
  }
}

}  // namespace
}  // namespace traind
