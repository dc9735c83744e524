// How the time to predict with trees is estimated from a few rows and rounds.
#include "worker/treefold/prediction_time.h"

#include <gtest/gtest.h>

#include <limits>

namespace traind {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();

TEST(PredictionTimeTest, AFixedCostIsNotMultipliedByTheRounds) {
  // Each call takes 50 ms, and each round 1 ms.
  TimedPrediction timed;
  timed.rows = 1000;
  timed.one_round_s = 0.051;
  timed.rounds = 11;
  timed.all_rounds_s = 0.061;
  EXPECT_NEAR(PredictionSeconds(timed, /*rounds=*/1000, /*rows=*/1000), 1.05, 1e-9);
}

TEST(PredictionTimeTest, RowsMultiplyTheTime) {
  TimedPrediction timed;
  timed.rows = 100;
  timed.one_round_s = 0.001;
  timed.rounds = 2;
  timed.all_rounds_s = 0.003;
  EXPECT_NEAR(PredictionSeconds(timed, /*rounds=*/5, /*rows=*/1000), 0.09, 1e-9);
  EXPECT_EQ(PredictionSeconds(timed, /*rounds=*/5, /*rows=*/0), 0);
}

TEST(PredictionTimeTest, MoreRoundsNeverCountAsFaster) {
  TimedPrediction timed;
  timed.rows = 10;
  timed.one_round_s = 0.02;
  timed.rounds = 10;
  timed.all_rounds_s = 0.01;  // a disturbed measurement
  EXPECT_NEAR(PredictionSeconds(timed, /*rounds=*/100, /*rows=*/10), 0.02, 1e-9);
}

TEST(PredictionTimeTest, AfterOneRoundTheTimeOfFurtherOnesIsUnknown) {
  TimedPrediction timed;
  timed.rows = 10;
  timed.one_round_s = 0.02;
  EXPECT_NEAR(PredictionSeconds(timed, /*rounds=*/100, /*rows=*/10), 0.02, 1e-9);
}

TEST(PredictionTimeTest, RoundsThatTheTimeDoesNotAllowDoNotCount) {
  EXPECT_EQ(RoundsToCome(/*planned=*/100, /*done=*/10, /*left_s=*/kForever, /*round_s=*/1), 100);
  EXPECT_EQ(RoundsToCome(/*planned=*/100, /*done=*/10, /*left_s=*/20, /*round_s=*/0.5), 50);
  EXPECT_EQ(RoundsToCome(/*planned=*/100, /*done=*/10, /*left_s=*/-1, /*round_s=*/0.5), 10);
}

TEST(PredictionTimeTest, WritingTakesTimeForEachValue) {
  EXPECT_NEAR(WritingSeconds(25'000'000) - WritingSeconds(0), 1, 1e-9);
}

}  // namespace
}  // namespace traind
