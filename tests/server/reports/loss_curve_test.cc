#include "server/reports/loss_curve.h"

#include <gtest/gtest.h>

#include <cmath>

namespace traind {
namespace {

using Points = std::vector<std::pair<double, double>>;

Points Falling(int epochs, double limit, double amplitude, double p) {
  Points points;
  for (int e = 1; e <= epochs; ++e) points.emplace_back(e, limit + amplitude * std::pow(e, -p));
  return points;
}

TEST(LossCurveTest, APowerLawIsContinued) {
  const auto ahead = Extrapolate(Falling(8, 0.2, 1, 1), 20, false);
  ASSERT_TRUE(ahead);
  EXPECT_NEAR(ahead->expected, 0.2 + 1 / 20.0, 1e-9);
  EXPECT_NEAR(ahead->now, 0.2 + 1 / 8.0, 1e-12);
  EXPECT_LE(ahead->low, ahead->expected);
  EXPECT_GE(ahead->high, ahead->expected);
}

TEST(LossCurveTest, AMetricThatRisesIsContinuedUpwards) {
  Points points;
  for (const auto& [e, y] : Falling(8, 0.1, 0.4, 0.5)) points.emplace_back(e, 1 - y);
  const auto ahead = Extrapolate(points, 30, true);
  ASSERT_TRUE(ahead);
  EXPECT_NEAR(ahead->expected, 1 - 0.1 - 0.4 / std::sqrt(30.0), 1e-9);
  EXPECT_GT(ahead->expected, ahead->now);
}

TEST(LossCurveTest, NoiseMakesTheBandWider) {
  Points points = Falling(12, 0.2, 1, 1);
  for (size_t i = 0; i < points.size(); ++i) points[i].second += i % 2 ? 0.02 : -0.02;
  const auto ahead = Extrapolate(points, 40, false);
  ASSERT_TRUE(ahead);
  EXPECT_GT(ahead->high - ahead->low, 0.002);
  EXPECT_LE(ahead->high, ahead->now + 1e-12);  // the best weights are kept
}

TEST(LossCurveTest, AFlatCurveBuysNothing) {
  const auto ahead = Extrapolate({{1, 0.5}, {2, 0.5}, {3, 0.5}, {4, 0.5}, {5, 0.5}}, 20, false);
  ASSERT_TRUE(ahead);
  EXPECT_NEAR(ahead->low, 0.5, 1e-9);
  EXPECT_NEAR(ahead->high, 0.5, 1e-9);
}

TEST(LossCurveTest, TooFewPointsSayNothing) {
  EXPECT_FALSE(Extrapolate(Falling(3, 0.2, 1, 1), 20, false));
  EXPECT_FALSE(Extrapolate(Falling(8, 0.2, 1, 1), 8, false));
  EXPECT_FALSE(Extrapolate({{1, NAN}, {2, NAN}, {3, NAN}, {4, NAN}}, 20, false));
}

}  // namespace
}  // namespace traind
