#include "worker/train/rate_sweep.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace traind {
namespace {

RateSweep SweepOver(const std::function<double(double)>& loss) {
  RateSweep sweep(1e-7, 1, 100);
  while (sweep.Add(loss(sweep.Rate()))) {
  }
  return sweep;
}

TEST(RateSweepTest, RatesGrowByOneFactorFromTheLeastToTheMost) {
  RateSweep sweep(1e-6, 1, 4);
  for (const double wanted : {1e-6, 1e-4, 1e-2, 1.0}) {
    EXPECT_NEAR(sweep.Rate(), wanted, 1e-9 * wanted + 1e-12);
    EXPECT_EQ(sweep.Add(1), wanted < 1);
  }
}

TEST(RateSweepTest, TheSteepestFallIsTaken) {
  // A step down around 1e-3, and up again around 0.3.
  const RateSweep sweep = SweepOver([](double rate) {
    return 2 - 1.5 / (1 + std::pow(1e-3 / rate, 3)) + 40 / (1 + std::pow(0.3 / rate, 6));
  });
  ASSERT_TRUE(sweep.Steepest().has_value());
  EXPECT_GT(*sweep.Steepest(), 5e-4);
  EXPECT_LT(*sweep.Steepest(), 2e-2);  // the smoothed loss lags some steps behind
}

TEST(RateSweepTest, ItEndsWhereTheLossDiverges) {
  RateSweep sweep(1e-7, 1, 100);
  int steps = 0;
  do {
    ++steps;
  } while (sweep.Add(sweep.Rate() < 1e-3 ? 1.0 : 100.0));
  EXPECT_LT(steps, 70);
  RateSweep broken(1e-7, 1, 100);
  EXPECT_TRUE(broken.Add(1));
  EXPECT_FALSE(broken.Add(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(broken.Steepest().has_value());
}

TEST(RateSweepTest, ALossThatNeverFallsTellsNothing) {
  EXPECT_FALSE(SweepOver([](double) { return 1.0; }).Steepest().has_value());
  EXPECT_FALSE(SweepOver([](double rate) { return 1 + rate; }).Steepest().has_value());
}

}  // namespace
}  // namespace traind
