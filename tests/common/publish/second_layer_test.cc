#include "common/publish/second_layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <list>
#include <random>

namespace traind {
namespace {

using ::testing::FloatNear;
using ::testing::IsEmpty;
using ::testing::Pointwise;

Metric Of(const char* name) { return *MetricByName(name); }

// Two trials whose probabilities are known to be of independent sources: the product of both is
// right, their mean is not. Or, with `mean`, the other way round.
class TwoSources {
 public:
  explicit TwoSources(size_t rows, size_t classes, bool mean = false) : classes_(classes) {
    std::mt19937 random(5);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    for (int fold = 0; fold < 5; ++fold) {
      FoldToJoin& to = folds.emplace_back();
      to.parts = {{fold, 0, 0.5}, {fold, 1, 0.5}};
      std::vector<float>* values[2] = {&values_.emplace_back(), &values_.emplace_back()};
      for (size_t row = 0; row < rows / 5; ++row) {
        std::vector<double> own[2], joined(classes);
        for (int trial = 0; trial < 2; ++trial) {
          double sum = 0;
          for (size_t c = 0; c < classes; ++c) {
            own[trial].push_back(std::exp(1.5 * normal(random)));
            sum += own[trial].back();
          }
          for (double& share : own[trial]) share /= sum;
          values[trial]->insert(values[trial]->end(), own[trial].begin(), own[trial].end());
        }
        double sum = 0;
        for (size_t c = 0; c < classes; ++c) {
          joined[c] = mean ? own[0][c] + own[1][c] : own[0][c] * own[1][c];
          sum += joined[c];
        }
        double draw = uniform(random) * sum;
        size_t label = 0;
        while (label + 1 < classes && draw > joined[label]) draw -= joined[label++];
        to.labels.push_back(static_cast<int32_t>(label));
      }
      to.values = {*values[0], *values[1]};
    }
  }
  double LossBy(const std::vector<TrialPower>& powers) const {
    double loss = 0, rows = 0;
    for (const FoldToJoin& fold : folds) {
      std::vector<float> out(fold.labels.size() * classes_);
      AnswerJoin(fold.parts, powers).Join(fold.values, classes_, absl::MakeSpan(out));
      for (size_t row = 0; row < fold.labels.size(); ++row) {
        loss -= std::log(out[row * classes_ + static_cast<size_t>(fold.labels[row])]);
      }
      rows += static_cast<double>(fold.labels.size());
    }
    return loss / rows;
  }

  std::vector<FoldToJoin> folds;

 private:
  const size_t classes_;
  std::list<std::vector<float>> values_;
};

TEST(ChoosePowersTest, IndependentTrialsAreMultiplied) {
  for (const size_t classes : {2, 5}) {
    const TwoSources sources(4000, classes);
    const std::vector<TrialPower> powers =
        ChoosePowers(Of("logloss"), classes, sources.folds, Tuned());
    ASSERT_EQ(powers.size(), 2u);
    EXPECT_EQ(powers[0].trial, 0);
    EXPECT_EQ(powers[1].trial, 1);
    for (const TrialPower& power : powers) EXPECT_NEAR(power.exponent, 1, 0.15);
    EXPECT_LT(sources.LossBy(powers), 0.9 * sources.LossBy({}));
  }
}

TEST(ChoosePowersTest, NothingIsChosenThatDoesNotGainOnOtherFolds) {
  const TwoSources mean(2000, 3, /*mean=*/true);
  EXPECT_THAT(ChoosePowers(Of("logloss"), 3, mean.folds, Tuned()), IsEmpty());
  const TwoSources few(495, 3), few_of_two(2995, 2);
  EXPECT_THAT(ChoosePowers(Of("logloss"), 3, few.folds, Tuned()), IsEmpty());
  EXPECT_THAT(ChoosePowers(Of("logloss"), 2, few_of_two.folds, Tuned()), IsEmpty());
  const TwoSources sources(2000, 3);
  EXPECT_THAT(ChoosePowers(Of("accuracy"), 3, sources.folds, Tuned()), IsEmpty());
  EXPECT_THAT(ChoosePowers(Of("logloss"), 3, {sources.folds[0]}, Tuned()), IsEmpty());
}

TEST(ChoosePowersTest, ItHasToBeBetterThanWeightsWithTheirTemperature) {
  // One of two trials that say the same is too sure of it by half: a temperature mends both.
  TwoSources sources(4000, 2);
  std::list<std::vector<float>> values;
  for (FoldToJoin& fold : sources.folds) {
    std::vector<float>& sharp = values.emplace_back(fold.values[0].begin(), fold.values[0].end());
    for (size_t at = 0; at < sharp.size(); at += 2) {
      const float odds = std::pow(sharp[at] / sharp[at + 1], 2.0f);
      sharp[at] = odds / (1 + odds);
      sharp[at + 1] = 1 / (1 + odds);
    }
    fold.parts = {{fold.parts[0].fold, 0, 0.5}, {fold.parts[0].fold, 1, 0.5}};
    fold.values = {sharp, sharp};
    std::mt19937 random(7);
    std::uniform_real_distribution<double> uniform;
    for (size_t row = 0; row < fold.labels.size(); ++row) {
      const double right = 1 / (1 + std::sqrt(sharp[2 * row + 1] / sharp[2 * row]));
      fold.labels[row] = uniform(random) < right ? 0 : 1;
    }
  }
  EXPECT_EQ(ChoosePowers(Of("logloss"), 2, sources.folds, Tuned()).size(), 2u);
  Tuned tuned;
  tuned.temperature = 2;
  EXPECT_THAT(ChoosePowers(Of("logloss"), 2, sources.folds, tuned), IsEmpty());
}

TEST(ChoosePowersTest, AFoldMayLackATrial) {
  TwoSources sources(2000, 3);
  FoldToJoin& lacking = sources.folds[3];
  lacking.parts = {{3, 0, 1}};
  lacking.values = {lacking.values[0]};
  const std::vector<TrialPower> powers = ChoosePowers(Of("logloss"), 3, sources.folds, Tuned());
  ASSERT_EQ(powers.size(), 2u);
  EXPECT_LT(sources.LossBy(powers), 0.95 * sources.LossBy({}));
}

std::vector<float> Joined(std::vector<AnswerPart> parts, std::vector<TrialPower> powers,
                          const std::vector<std::vector<float>>& values) {
  std::vector<float> out(values[0].size());
  std::vector<absl::Span<const float>> spans(values.begin(), values.end());
  AnswerJoin(std::move(parts), std::move(powers)).Join(spans, 2, absl::MakeSpan(out));
  return out;
}

TEST(AnswerJoinTest, WithoutPowersItIsTheMeanByTheWeights) {
  EXPECT_THAT(Joined({{0, 0, 0.25}, {0, 1, 0.75}}, {}, {{0.8f, 0.2f}, {0.4f, 0.6f}}),
              Pointwise(FloatNear(1e-6), {0.5, 0.5}));
}

TEST(AnswerJoinTest, EachFoldIsAProductAndTheFoldsAreAveraged) {
  // Fold 0: 0.8^2 x 0.5 to 0.2^2 x 0.5 is 16 to 1. Fold 1 has two seeds of trial 0, whose mean is
  // 0.6: 0.36 x 0.2 to 0.16 x 0.8 is 0.36.
  EXPECT_THAT(Joined({{0, 0, 0.25}, {0, 1, 0.25}, {1, 0, 0.125}, {1, 0, 0.125}, {1, 1, 0.25}},
                     {{0, 2}, {1, 1}},
                     {{0.8f, 0.2f}, {0.5f, 0.5f}, {0.5f, 0.5f}, {0.7f, 0.3f}, {0.2f, 0.8f}}),
              Pointwise(FloatNear(1e-5), {(16.0 / 17 + 0.36) / 2, (1.0 / 17 + 0.64) / 2}));
}

TEST(AnswerJoinTest, TheFloorIsAPartOfEachFold) {
  EXPECT_THAT(Joined({{0, 0, 0.6}, {-1, -1, 0.4}}, {{-1, 1}, {0, 1}}, {{0.8f, 0.2f}, {0.5f, 0.5f}}),
              Pointwise(FloatNear(1e-5), {0.8, 0.2}));
  EXPECT_THAT(Joined({{-1, -1, 1}}, {{-1, 1}, {0, 1}}, {{0.3f, 0.7f}}),
              Pointwise(FloatNear(1e-6), {0.3, 0.7}))
      << "the floor alone";
}

TEST(AnswerJoinTest, TheMeanOfTheFoldStandsInForATrialThatItLacks) {
  // 0.8 twice: 16 to 1.
  EXPECT_THAT(Joined({{0, 0, 1}}, {{0, 1}, {1, 1}}, {{0.8f, 0.2f}}),
              Pointwise(FloatNear(1e-5), {16.0 / 17, 1.0 / 17}));
}

}  // namespace
}  // namespace traind
