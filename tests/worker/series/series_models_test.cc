// Numbers of statsmodels 0.15.0 stand beside ours; series_golden.py prints them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "worker/series/exponential_smoothing.h"
#include "worker/series/nelder_mead.h"
#include "worker/series/season.h"
#include "worker/series/theta.h"

namespace traind {
namespace {

constexpr int kRows = 120;
constexpr size_t kPeriod = 12, kAll = 1 << 20;
const double kMissing = std::numeric_limits<double>::quiet_NaN();

std::vector<double> Series(const std::string& kind) {
  std::vector<double> values;
  double sum = 0;
  for (int t = 0; t < kRows; ++t) {
    const double noise = (t * 7919 % 101) / 101.0 - 0.5;
    const double season = 10 * std::sin(2 * M_PI * t / kPeriod);
    sum += noise;
    if (kind == "walk") values.push_back(20 + 4 * sum);
    if (kind == "trend") values.push_back(50 + 0.3 * t + 6 * noise + sum);
    if (kind == "season") values.push_back(50 + 0.3 * t + season + 6 * noise);
  }
  return values;
}

std::vector<double> Forecasts(const SeriesModel& model, int64_t steps) {
  std::vector<double> forecasts;
  for (int64_t step = 1; step <= steps; ++step) forecasts.push_back(model.Forecast(step));
  return forecasts;
}

void ExpectNear(const std::vector<double>& values, const std::vector<double>& expected,
                double tolerance) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], tolerance) << i;
}

ExponentialSmoothing Passed(ExponentialSmoothing model, const std::vector<double>& values) {
  for (const double value : values) model.Append(value);
  return model;
}

TEST(ExponentialSmoothingTest, WithGivenWeightsItIsThatOfStatsmodels) {
  const auto walk = Passed(ExponentialSmoothing({}, {0.3, 0, 0, 1}, {20, 0, {}}), Series("walk"));
  EXPECT_NEAR(walk.squares(), 138.22497, 1e-5);
  ExpectNear(Forecasts(walk, 2), {13.7580285, 13.7580285}, 1e-6);

  const auto trend =
      Passed(ExponentialSmoothing({true, false}, {0.3, 0.1, 0, 1}, {50, 0.5, {}}), Series("trend"));
  EXPECT_NEAR(trend.squares(), 627.463374, 1e-5);
  ExpectNear(Forecasts(trend, 3), {84.5040679, 84.8415681, 85.1790684}, 1e-6);

  const auto damped = Passed(ExponentialSmoothing({true, true}, {0.3, 0.1, 0, 0.9}, {50, 0.5, {}}),
                             Series("trend"));
  EXPECT_NEAR(damped.squares(), 627.476618, 1e-5);
  ExpectNear(Forecasts(damped, 3), {84.2149079, 84.4371473, 84.6371627}, 1e-6);

  SmoothingState state = {50, 0.5, {}};
  for (size_t i = 0; i < kPeriod; ++i) {
    state.season.push_back(10 * std::sin(2 * M_PI * static_cast<double>(i) / kPeriod));
  }
  const auto season = Passed(
      ExponentialSmoothing({true, true, kPeriod}, {0.3, 0.1, 0.2, 0.9}, state), Series("season"));
  EXPECT_NEAR(season.squares(), 621.772786, 1e-5);
  ExpectNear(Forecasts(season, 15),
             {86.3803541, 90.5436064, 95.1174413, 95.3229998, 95.7129091, 91.2600782, 86.6150604,
              82.4689876, 77.5920195, 77.3912477, 78.3213255, 82.2723184, 87.8045101, 91.8253468,
              96.2710076},
             1e-6);
}

// statsmodels fits the first season, too, by as many parameters as it has rows.
TEST(ExponentialSmoothingTest, AFitIsNearlyAsGoodAsThatOfStatsmodels) {
  const auto walk = ExponentialSmoothing::Fit(Series("walk"), {});
  EXPECT_LT(walk.squares(), 1.001 * 119.676192);
  EXPECT_NEAR(walk.Forecast(1), 13.7325526, 0.01);
  const auto trend = ExponentialSmoothing::Fit(Series("trend"), {true, false});
  EXPECT_LT(trend.squares(), 1.01 * 436.233847);
  EXPECT_NEAR(trend.Forecast(15), 88.1756948, 0.5);
  const auto season = ExponentialSmoothing::Fit(Series("season"), {true, false, kPeriod});
  EXPECT_LT(season.squares(), 1.1 * 354.691753);
  ExpectNear(Forecasts(season, 6),
             {86.139314, 90.8861193, 95.4843397, 96.5568074, 96.1531163, 92.2241945}, 2);
}

TEST(ExponentialSmoothingTest, TheFormFollowsTheSeries) {
  // Pure growth by 2 % a row with a season that grows along.
  std::vector<double> values;
  for (int t = 0; t < kRows; ++t) {
    const double noise = (t * 7919 % 101) / 101.0 - 0.5;
    values.push_back((100 + 30 * std::sin(2 * M_PI * t / kPeriod)) * std::pow(1.01, t) *
                     (1 + 0.02 * noise));
  }
  const auto grown = ExponentialSmoothing::FitBest(values, kPeriod, kAll);
  ASSERT_NE(grown, nullptr);
  for (int step = 1; step <= 12; ++step) {
    const int t = kRows + step - 1;
    const double truth = (100 + 30 * std::sin(2 * M_PI * t / kPeriod)) * std::pow(1.01, t);
    EXPECT_NEAR(grown->Forecast(step), truth, 0.06 * truth) << step;
  }
  // A constant has no season and no trend.
  const auto flat = ExponentialSmoothing::FitBest(std::vector<double>(40, 7.0), kPeriod, kAll);
  EXPECT_NEAR(flat->Forecast(30), 7, 1e-6);
  EXPECT_EQ(ExponentialSmoothing::FitBest(std::vector<double>{1, 2, 3}, 1, kAll), nullptr);
}

TEST(ExponentialSmoothingTest, AMissingValueIsNoNews) {
  std::vector<double> values = Series("season");
  const auto whole = ExponentialSmoothing::FitBest(values, kPeriod, kAll);
  for (const size_t gap : {0, 40, 41, 100}) values[gap] = kMissing;
  const auto with_gaps = ExponentialSmoothing::FitBest(values, kPeriod, kAll);
  for (int step = 1; step <= 12; ++step) {
    EXPECT_NEAR(with_gaps->Forecast(step), whole->Forecast(step), 3) << step;
  }
  const double next = with_gaps->Forecast(2);
  with_gaps->Append(kMissing);
  EXPECT_NEAR(with_gaps->Forecast(1), next, 1e-9);
}

TEST(ExponentialSmoothingTest, ALongSeasonIsTakenOut) {
  std::vector<double> values;
  const auto value = [](int t) { return 5 + 3 * std::sin(2 * M_PI * t / 60); };
  for (int t = 0; t < 300; ++t) values.push_back(value(t) + (t * 7919 % 101) / 1010.0);
  for (const size_t most : {kAll, size_t{270}}) {
    const auto model = ExponentialSmoothing::FitBest(values, 60, most);
    for (int step = 1; step <= 60; ++step) {
      EXPECT_NEAR(model->Forecast(step), value(299 + step), 0.3) << step;
    }
    model->Append(value(300));
    EXPECT_NEAR(model->Forecast(10), value(310), 0.3);
  }
}

TEST(SeasonTest, TheIndicesAreThoseOfStatsmodels) {
  const auto values = Series("season");
  EXPECT_TRUE(IsSeasonal(values, kPeriod));
  ExpectNear(SeasonOf(values, kPeriod, SeasonKind::kAdditive),
             {0.479166667, 4.59027778, 8.69497626, 9.8125, 8.8894207, 4.97916667, -0.104166667,
              -4.6875, -8.56997626, -10.1319444, -9.0144207, -4.9375},
             1e-6);
  ExpectNear(SeasonOf(values, kPeriod, SeasonKind::kMultiplicative),
             {1.00905672, 1.06884932, 1.13009613, 1.14805743, 1.13090576, 1.0762439, 0.998345102,
              0.92999578, 0.870208154, 0.846580902, 0.866245175, 0.925415624},
             1e-6);
  EXPECT_FALSE(IsSeasonal(Series("walk"), 7));
  EXPECT_FALSE(IsSeasonal(std::vector<double>(30, 1.0), 7));
}

TEST(SeasonTest, GapsAreInterpolated) {
  ExpectNear(WithoutGaps(std::vector<double>{kMissing, 2, kMissing, kMissing, 8, kMissing}),
             {2, 2, 4, 6, 8, 8}, 1e-12);
  ExpectNear(WithoutGaps(std::vector<double>{kMissing}), {0}, 0);
}

TEST(ThetaTest, ForecastsAreThoseOfStatsmodels) {
  const auto season = ThetaModel::Fit(Series("season"), kPeriod, kAll);
  ExpectNear(Forecasts(*season, 15),
             {88.5383773, 93.9473697, 99.5025914, 101.258662, 99.9178913, 95.2520948, 88.5095699,
              82.5914221, 77.4141355, 75.4410059, 77.325093, 82.7476765, 90.3800677, 95.8981912,
              101.565198},
             0.1);
  const auto trend = ThetaModel::Fit(Series("trend"), kPeriod, kAll);
  ExpectNear(Forecasts(*trend, 3), {84.7782012, 83.5560457, 84.321407}, 0.1);
}

TEST(ThetaTest, AppendedRowsMoveTheLevel) {
  const auto values = Series("season");
  const auto early = ThetaModel::Fit(absl::MakeConstSpan(values).subspan(0, 108), kPeriod, kAll);
  for (size_t i = 108; i < values.size(); ++i) early->Append(values[i]);
  const auto late = ThetaModel::Fit(values, kPeriod, kAll);
  ExpectNear(Forecasts(*early, 12), Forecasts(*late, 12), 3);
}

TEST(NelderMeadTest, ItFindsTheMinimumOfRosenbrock) {
  const auto rosenbrock = [](const std::vector<double>& x) {
    return std::pow(1 - x[0], 2) + 100 * std::pow(x[1] - x[0] * x[0], 2);
  };
  const Minimum found = Minimise(rosenbrock, {-1.2, 1}, {0.5, 0.5}, 500);
  EXPECT_NEAR(found.at[0], 1, 1e-3);
  EXPECT_NEAR(found.at[1], 1, 1e-3);
}

}  // namespace
}  // namespace traind
