#include "common/publish/quantiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace traind {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsNan;
using ::testing::Pointwise;

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

std::vector<double> At(const Quantiles& quantiles, std::vector<float> answer, int step = 0) {
  std::vector<double> out;
  QuantilesAt(quantiles, answer, step, out);
  return out;
}

// Of nine errors the level 0.1 is the first, 0.5 the fifth and 0.9 the last: (n + 1) x level.
TEST(QuantilesTest, LevelsTakeTheErrorsOfTheirRanks) {
  const std::vector<float> answers(9, 10), values = {12, 9, 14, 8, 10, 13, 11, 7, 6};
  const Quantiles quantiles = QuantilesOf({0.01, 0.1, 0.5, 0.9}, 1, answers, values);
  EXPECT_THAT(At(quantiles, {10}), ElementsAre(6, 6, 10, 14));
  EXPECT_THAT(At(quantiles, {20}), ElementsAre(16, 16, 20, 24));
}

TEST(QuantilesTest, RowsWithoutAValueOrAnAnswerDoNotCount) {
  const Quantiles quantiles =
      QuantilesOf({0.5}, 1, std::vector<float>{1, 1, kNone, 1, 1}, {2, kNone, 50, 3, 4});
  EXPECT_THAT(At(quantiles, {5}), ElementsAre(7));
}

TEST(QuantilesTest, ATargetOfWhichNothingIsKnownHasNone) {
  const Quantiles quantiles =
      QuantilesOf({0.1, 0.9}, 2, std::vector<float>{1, 5, 2, 6}, {1, kNone, 2, kNone});
  ASSERT_EQ(quantiles.targets.size(), 2u);
  EXPECT_THAT(quantiles.targets[1].at, IsEmpty());
  EXPECT_THAT(At(quantiles, {1, 5}), ElementsAre(1, 1, IsNan(), IsNan()));
}

TEST(QuantilesTest, NothingIsBelowZeroWhereNoKnownValueIs) {
  const std::vector<float> answers(20, 10);
  std::vector<float> values(20, 3);
  EXPECT_THAT(At(QuantilesOf({0.1}, 1, answers, values), {5}), ElementsAre(0));
  values[4] = -1;
  EXPECT_THAT(At(QuantilesOf({0.5}, 1, answers, values), {5}), ElementsAre(-2));
}

// A group is at its middle answer, and the offset is between those of its neighbours in between.
TEST(QuantilesTest, ErrorsGrowWithTheAnswer) {
  std::vector<float> answers, values;
  for (int i = 0; i < 200; ++i) {
    answers.push_back(i < 100 ? 100 : 200);
    values.push_back(answers.back() + (i < 100 ? 1 : 10));
  }
  const Quantiles quantiles = QuantilesOf({0.5}, 1, answers, values);
  EXPECT_THAT(quantiles.targets[0].at, ElementsAre(100, 200));
  EXPECT_THAT(At(quantiles, {50}), ElementsAre(51));
  EXPECT_THAT(At(quantiles, {150}), ElementsAre(155.5));
  EXPECT_THAT(At(quantiles, {300}), ElementsAre(310));
}

TEST(QuantilesTest, RowsOfTheSameAnswerAreOneGroup) {
  const std::vector<float> answers(1000, 3), values(1000, 4);
  EXPECT_THAT(QuantilesOf({0.5}, 1, answers, values).targets[0].at, ElementsAre(3));
}

// On rows that were not there before, over many draws; also where errors are small.
TEST(QuantilesTest, TheSharesBelowAreThoseOfTheLevels) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(0, 100);
  const std::vector<double> levels = {0.05, 0.25, 0.5, 0.9};
  const auto draw = [&](std::vector<float>& answers, std::vector<float>& values) {
    const double answer = uniform(random);
    answers.push_back(static_cast<float>(answer));
    values.push_back(static_cast<float>(answer + (0.2 + answer / 20) * normal(random)));
  };
  std::vector<double> below(levels.size()), below_of_small(levels.size());
  double small = 0;
  constexpr int kDraws = 200, kLater = 200;
  for (int i = 0; i < kDraws; ++i) {
    std::vector<float> answers, values;
    for (int row = 0; row < 1000; ++row) draw(answers, values);
    const Quantiles quantiles = QuantilesOf(levels, 1, answers, values);
    for (int row = 0; row < kLater; ++row) {
      std::vector<float> answer, value;
      draw(answer, value);
      const std::vector<double> at = At(quantiles, answer);
      small += answer[0] < 25 ? 1 : 0;
      for (size_t q = 0; q < levels.size(); ++q) {
        below[q] += value[0] <= at[q] ? 1 : 0;
        below_of_small[q] += answer[0] < 25 && value[0] <= at[q] ? 1 : 0;
      }
    }
  }
  for (double& share : below) share /= kDraws * kLater;
  for (double& share : below_of_small) share /= small;
  EXPECT_THAT(below, Pointwise(DoubleNear(0.02), levels));
  // One group for all would put 0.9 at 0.99 here.
  EXPECT_THAT(below_of_small, Pointwise(DoubleNear(0.04), levels));
}

// Errors of a forecast that grow with its steps, as a random walk's do.
struct Walk {
  std::vector<float> answers, values;
  std::vector<int32_t> steps;
};
Walk WalkOf(int rows, int horizon, unsigned seed) {
  std::mt19937 chance(seed);
  std::normal_distribution<float> normal;
  Walk walk;
  for (int i = 0; i < rows; ++i) {
    walk.steps.push_back(i % horizon + 1);
    walk.answers.push_back(100);
    walk.values.push_back(100 + std::sqrt(static_cast<float>(walk.steps.back())) * normal(chance));
  }
  return walk;
}

TEST(QuantilesTest, AForecastsIntervalsWidenWithItsSteps) {
  const Walk walk = WalkOf(16000, 16, 1);
  const Quantiles quantiles = QuantilesOf({0.1, 0.9}, 1, walk.answers, walk.values, walk.steps);
  for (const int step : {1, 4, 9, 16}) {
    const double expected = 1.2816 * std::sqrt(step);
    EXPECT_THAT(At(quantiles, {100}, step),
                Pointwise(DoubleNear(0.15 * expected), {100 - expected, 100 + expected}))
        << "step " << step;
  }
  EXPECT_EQ(At(quantiles, {100}, 50), At(quantiles, {100}, 16)) << "nothing is known beyond";
  EXPECT_EQ(At(quantiles, {100}, 0), At(quantiles, {100}, 16)) << "the step is not known";
}

TEST(QuantilesTest, EachStepHasItsShareOfRowsInside) {
  const Walk walk = WalkOf(8000, 8, 2), later = WalkOf(8000, 8, 3);
  const Quantiles quantiles = QuantilesOf({0.05, 0.95}, 1, walk.answers, walk.values, walk.steps);
  const Quantiles pooled = QuantilesOf({0.05, 0.95}, 1, walk.answers, walk.values);
  for (int step = 1; step <= 8; ++step) {
    int inside = 0, rows = 0;
    const std::vector<double> at = At(quantiles, {100}, step);
    for (size_t i = 0; i < later.values.size(); ++i) {
      if (later.steps[i] != step) continue;
      ++rows;
      inside += later.values[i] >= at[0] && later.values[i] <= at[1];
    }
    EXPECT_NEAR(static_cast<double>(inside) / rows, 0.9, 0.035) << "step " << step;
  }
  const auto mean = [&](const Quantiles& of) {
    const auto scores = ScoreQuantiles(of, later.answers, later.values, later.steps);
    return scores.pinball[0] + scores.pinball[1];
  };
  EXPECT_LT(mean(quantiles), 0.97 * mean(pooled));
}

TEST(QuantilesTest, FewRowsOrOneStepHaveOneWidth) {
  const Walk few = WalkOf(150, 8, 4);
  EXPECT_THAT(QuantilesOf({0.1}, 1, few.answers, few.values, few.steps).targets[0].steps,
              IsEmpty());
  Walk one = WalkOf(500, 8, 4);
  one.steps.assign(500, 8);
  EXPECT_EQ(QuantilesOf({0.1}, 1, one.answers, one.values, one.steps),
            QuantilesOf({0.1}, 1, one.answers, one.values));
}

TEST(QuantilesTest, AStepWithoutErrorsKeepsItsQuantilesFinite) {
  Walk walk = WalkOf(800, 4, 5);
  for (size_t i = 0; i < 800; i += 4) walk.values[i] = walk.answers[i];
  const Quantiles quantiles = QuantilesOf({0.1, 0.9}, 1, walk.answers, walk.values, walk.steps);
  for (const double quantile : At(quantiles, {100}, 1)) EXPECT_NEAR(quantile, 100, 0.1);
}

// The pinball loss is level x error above the quantile, and (1 - level) x error below it.
TEST(QuantilesTest, ScoresAreMeansOverKnownValues) {
  Quantiles quantiles;
  quantiles.levels = {0.25};
  quantiles.targets = {{{0}, {1}, false}};
  const QuantileScores scores =
      ScoreQuantiles(quantiles, std::vector<float>{0, 0, 0}, std::vector<float>{3, 0, kNone}, {});
  EXPECT_THAT(scores.pinball, ElementsAre((0.25 * 2 + 0.75 * 1) / 2));
  EXPECT_THAT(scores.below, ElementsAre(0.5));
  EXPECT_THAT(ScoreQuantiles(quantiles, {}, {}, {}).pinball, IsEmpty());
}

}  // namespace
}  // namespace traind
