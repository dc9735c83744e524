#include "common/publish/ensemble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/publish/greedy_selection.h"

namespace traind {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

std::vector<float> Blended(const std::vector<std::vector<float>>& parts,
                           const std::vector<double>& weights) {
  std::vector<absl::Span<const float>> spans(parts.begin(), parts.end());
  std::vector<float> out(parts[0].size());
  Blend(spans, weights, absl::MakeSpan(out));
  return out;
}

TEST(EnsembleTest, EqualWeightsGiveThePlainMeanAndOthersTheirSum) {
  EXPECT_THAT(Blended({{1, 2}, {3, 6}}, {0.5, 0.5}), ElementsAre(2, 4));
  EXPECT_THAT(Blended({{1, 2}, {3, 6}}, {0.25, 0.75}), ElementsAre(2.5, 5));
  // A third is no binary fraction: the mean is a division, as of one who knows of no weights.
  const float x = 0.1f;
  EXPECT_THAT(Blended({{x}, {x}, {x}}, {1.0 / 3, 1.0 / 3, 1.0 / 3}), ElementsAre(x));
}

TEST(EnsembleTest, WeightsThatAddToOneStayAsTheyAre) {
  const double third = 1.0 / 3, share = third / 7;
  std::vector<double> weights = {third, third, share, share, share, share, share, share, share};
  const std::vector<double> before = weights;
  ScaleToOne(weights);
  EXPECT_EQ(weights, before);
  weights = {1, 2, 1};
  ScaleToOne(weights);
  EXPECT_THAT(weights, ElementsAre(0.25, 0.5, 0.25));
}

TEST(EnsembleTest, WeightsFollowTheErrorWithinATenthOfTheGreatest) {
  EXPECT_THAT(WeightsByScore(*MetricByName("rmse"), {1, 3}), ElementsAre(0.75, 0.25));
  EXPECT_THAT(WeightsByScore(*MetricByName("accuracy"), {0.9, 0.7}),
              ElementsAre(DoubleNear(0.75, 1e-9), DoubleNear(0.25, 1e-9)));
  EXPECT_THAT(WeightsByScore(*MetricByName("rmse"), {1e-12, 1}),
              ElementsAre(DoubleNear(10.0 / 11, 1e-9), DoubleNear(1.0 / 11, 1e-9)));
  EXPECT_THAT(WeightsByScore(*MetricByName("accuracy"), {1, 1}), ElementsAre(0.5, 0.5));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(WeightsByScore(*MetricByName("rmse"), {nan, 2}), ElementsAre(0.5, 0.5));
}

TEST(EnsembleTest, NamesAreThoseOfTheSpec) {
  for (const char* name : {"mean", "weighted", "greedy"}) {
    EXPECT_EQ(EnsembleName(EnsembleByName(name)), name);
  }
  EXPECT_EQ(EnsembleByName("newer"), EnsembleKind::kMean);
}

// Targets of 0: the score is the mean of squares.
double Squares(absl::Span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += value * value;
  return sum;
}
bool Less(double a, double b) { return a < b; }

std::vector<double> Selected(const std::vector<std::vector<float>>& candidates) {
  std::vector<absl::Span<const float>> spans(candidates.begin(), candidates.end());
  return GreedyWeights(spans, Squares, Less);
}

TEST(GreedySelectionTest, ErrorsThatCancelEachOtherAreJoined) {
  EXPECT_THAT(Selected({{1, -1}, {-1, 1}}), ElementsAre(0.5, 0.5));
  // The best mean weighs them 3 to 1: with replacement it is found.
  EXPECT_THAT(Selected({{1, 1}, {-3, -3}}), ElementsAre(0.75, 0.25));
}

TEST(GreedySelectionTest, OneThatOnlyHarmsHasNoWeight) {
  EXPECT_THAT(Selected({{0.5f, 0}, {5, 5}}), ElementsAre(1, 0));
  EXPECT_THAT(Selected({{5, 5}, {0, 0}}), ElementsAre(0, 1));
}

TEST(GreedySelectionTest, OfEqualCandidatesTheFirstStays) {
  EXPECT_THAT(Selected({{1, 0}, {1, 0}}), ElementsAre(1, 0));
}

}  // namespace
}  // namespace traind
