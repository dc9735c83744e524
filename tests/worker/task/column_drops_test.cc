// What shuffling a column costs, and that it never takes longer than it may.
#include "worker/task/column_drops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Row i has the values i and i % 7. The "model" answers the first column, which is the truth.
class FakeScorer final : public ColumnScorer {
 public:
  FakeScorer(SimulatedClock& clock, int64_t rows, absl::Duration per_row)
      : clock_(clock), rows_(rows), per_row_(per_row) {}

  std::vector<std::string> Columns() const override { return {"truth", "noise"}; }
  int64_t rows() const override { return rows_; }
  absl::Status Take(absl::Span<const int32_t> rows) override {
    taken_.assign(rows.begin(), rows.end());
    return absl::OkStatus();
  }
  absl::StatusOr<double> Score(size_t column, absl::Span<const int32_t> order) override {
    clock_.Advance(per_row_ * static_cast<double>(taken_.size()) * slower_);
    ++scores_;
    double sum = 0;
    for (size_t i = 0; i < order.size() && column == 0; ++i) {
      sum += std::pow(taken_[i] - taken_[static_cast<size_t>(order[i])], 2);
    }
    return std::sqrt(sum / static_cast<double>(taken_.size()));
  }

  SimulatedClock& clock_;
  const int64_t rows_;
  const absl::Duration per_row_;
  double slower_ = 1;
  int scores_ = 0;
  std::vector<int32_t> taken_;
};

class ColumnDropsTest : public ::testing::Test {
 protected:
  facts::Importance Drops(FakeScorer& scorer, absl::Duration time) {
    const absl::Duration began = clock_.MonotonicNow();
    const auto drops = ImportanceOf(scorer, MetricByName("rmse").value(), 3, clock_, time);
    EXPECT_TRUE(drops.ok()) << drops.status();
    used_ = clock_.MonotonicNow() - began;
    return drops.value_or(facts::Importance());
  }

  SimulatedClock clock_{absl::UnixEpoch()};
  absl::Duration used_;
};

TEST_F(ColumnDropsTest, WhatTheModelUsesCostsScoreAndTheRestNothing) {
  FakeScorer scorer(clock_, 600, absl::Microseconds(10));
  const facts::Importance found = Drops(scorer, absl::Seconds(1));
  EXPECT_THAT(found.columns, ElementsAre("truth", "noise"));
  // Two independent rows of 600 differ by 600 / sqrt(6) in quadratic mean.
  EXPECT_NEAR(found.drops[0], 245, 25);
  EXPECT_EQ(found.drops[1], 0);
  EXPECT_THAT(scorer.taken_, SizeIs(600));
  FakeScorer again(clock_, 600, absl::Microseconds(10));
  EXPECT_EQ(Drops(again, absl::Seconds(1)).drops, found.drops) << "the same rows in the same order";
}

TEST_F(ColumnDropsTest, FewerRowsAreShuffledWhereTimeIsShort) {
  FakeScorer scorer(clock_, 10'000, absl::Milliseconds(1));
  const facts::Importance found = Drops(scorer, absl::Milliseconds(1200));
  EXPECT_THAT(found.columns, SizeIs(2));
  EXPECT_LT(scorer.taken_.size(), 300u);
  EXPECT_GE(scorer.taken_.back(), 9'900) << "they are spread over all";
  EXPECT_LE(used_, absl::Milliseconds(1200));
}

TEST_F(ColumnDropsTest, NothingIsToldWhereTimeSufficesForTooFewRows) {
  FakeScorer scorer(clock_, 10'000, absl::Milliseconds(1));
  EXPECT_THAT(Drops(scorer, absl::Milliseconds(500)).columns, IsEmpty());
  EXPECT_EQ(scorer.scores_, 1) << "one, to see what it takes";
  EXPECT_THAT(Drops(scorer, absl::ZeroDuration()).columns, IsEmpty());
  EXPECT_EQ(scorer.scores_, 1);
}

TEST_F(ColumnDropsTest, ItEndsWhereScoresTakeLongerThanTheyDidAtFirst) {
  class Slowing final : public ColumnScorer {
   public:
    explicit Slowing(FakeScorer& scorer) : scorer_(scorer) {}
    std::vector<std::string> Columns() const override { return scorer_.Columns(); }
    int64_t rows() const override { return scorer_.rows(); }
    absl::Status Take(absl::Span<const int32_t> rows) override { return scorer_.Take(rows); }
    absl::StatusOr<double> Score(size_t column, absl::Span<const int32_t> order) override {
      if (!order.empty()) scorer_.slower_ = 10;
      return scorer_.Score(column, order);
    }
    FakeScorer& scorer_;
  };
  FakeScorer scorer(clock_, 400, absl::Milliseconds(1));
  Slowing slowing(scorer);
  const auto drops =
      ImportanceOf(slowing, MetricByName("rmse").value(), 3, clock_, absl::Seconds(3));
  ASSERT_TRUE(drops.ok());
  EXPECT_THAT(drops->columns, IsEmpty()) << "the second column was not reached in time";
  EXPECT_EQ(scorer.scores_, 3);
}

TEST(TimeForImportanceTest, ItIsASmallShareOfWhatIsThere) {
  const absl::Duration endless = absl::InfiniteDuration();
  EXPECT_EQ(TimeForImportance(0, absl::Seconds(1), endless), absl::Milliseconds(200));
  EXPECT_EQ(TimeForImportance(0, absl::Seconds(1), absl::Seconds(10)), absl::Milliseconds(100));
  EXPECT_EQ(TimeForImportance(0, absl::Seconds(1), absl::Seconds(-1)), absl::ZeroDuration());
  EXPECT_EQ(TimeForImportance(0, absl::Hours(9), endless), absl::Seconds(10));
  EXPECT_EQ(TimeForImportance(2, absl::Seconds(1), endless), absl::Milliseconds(50));
  EXPECT_EQ(TimeForImportance(2, absl::Hours(9), endless), absl::Milliseconds(2500));
  EXPECT_EQ(TimeForImportance(2, absl::Milliseconds(200), endless), absl::Milliseconds(20));
  EXPECT_EQ(TimeForImportance(2, absl::Milliseconds(50), endless), absl::Milliseconds(10));
  EXPECT_EQ(TimeForImportance(2, absl::Seconds(1), absl::Seconds(-1)), absl::ZeroDuration());
}

TEST(TellsImportanceTest, TheFirstModelOfEachTrialDoesWhereItIsWhole) {
  rank_protocol::Train train;
  EXPECT_TRUE(TellsImportance(train, StopCause::kEpochs, 500));
  EXPECT_TRUE(TellsImportance(train, StopCause::kPatience, 500));
  EXPECT_FALSE(TellsImportance(train, StopCause::kTime, 500));
  train.trial = 3;
  EXPECT_TRUE(TellsImportance(train, StopCause::kEpochs, 100));
  EXPECT_FALSE(TellsImportance(train, StopCause::kEpochs, 101)) << "so much is not stored";
  train.seed = 1;
  EXPECT_FALSE(TellsImportance(train, StopCause::kEpochs, 100));
}

}  // namespace
}  // namespace traind
