#include "common/publish/tuned.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace traind {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

Metric Of(const char* name) { return *MetricByName(name); }

// Folds whose probabilities are those of the labels to the power `sureness`.
std::vector<FoldToTune> Folds(size_t rows, size_t classes, double sureness, double rare = 0) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  std::vector<FoldToTune> folds(5);
  std::vector<double> p(classes);
  for (size_t row = 0; row < rows; ++row) {
    FoldToTune& fold = folds[row % 5];
    double sum = 0;
    for (size_t c = 0; c < classes; ++c) {
      p[c] = std::exp(1.5 * normal(random) - (c == 1 ? rare : 0));
      sum += p[c];
    }
    double draw = uniform(random) * sum;
    size_t label = 0;
    while (label + 1 < classes && draw > p[label]) draw -= p[label++];
    fold.labels.push_back(static_cast<int32_t>(label));
    double powers = 0;
    for (const double x : p) powers += std::pow(x, sureness);
    for (const double x : p) {
      fold.probabilities.push_back(static_cast<float>(std::pow(x, sureness) / powers));
    }
  }
  return folds;
}

double ScoreOf(const char* metric, size_t classes, const std::vector<FoldToTune>& folds,
               const Tuned& tuned) {
  std::vector<float> probabilities;
  std::vector<int32_t> labels;
  for (const FoldToTune& fold : folds) {
    probabilities.insert(probabilities.end(), fold.probabilities.begin(), fold.probabilities.end());
    labels.insert(labels.end(), fold.labels.begin(), fold.labels.end());
  }
  return TunedScore(Of(metric), classes, tuned, probabilities, labels);
}

TEST(TunedTest, ATemperatureUndoesOverconfidence) {
  const auto two = Folds(5000, 2, 2.0);
  const Tuned tuned = Tune(Of("logloss"), 2, two);
  EXPECT_NEAR(tuned.temperature, 2, 0.15);
  EXPECT_LT(ScoreOf("logloss", 2, two, tuned), 0.95 * ScoreOf("logloss", 2, two, Tuned()));
  EXPECT_NEAR(Tune(Of("logloss"), 4, Folds(3000, 4, 0.5)).temperature, 0.5, 0.05);
}

TEST(TunedTest, FewRowsAndProbabilitiesThatAreRightHaveNoTemperature) {
  EXPECT_EQ(Tune(Of("logloss"), 2, Folds(2900, 2, 2.0)), Tuned());
  EXPECT_EQ(Tune(Of("logloss"), 4, Folds(490, 4, 2.0)), Tuned());
  EXPECT_NE(Tune(Of("logloss"), 4, Folds(510, 4, 2.0)), Tuned());
  EXPECT_NEAR(Tune(Of("logloss"), 2, Folds(5000, 2, 1.0)).temperature, 1, 0.08);
  EXPECT_EQ(Tune(Of("auc"), 2, Folds(5000, 2, 2.0)), Tuned()) << "it does not change the order";
  EXPECT_EQ(Tune(Of("logloss"), 2, {Folds(50'000, 2, 2.0)[0]}), Tuned()) << "one fold";
}

TEST(TunedTest, AThresholdRaisesF1OfARareClass) {
  const auto folds = Folds(4000, 2, 1.0, /*rare=*/3);
  const Tuned tuned = Tune(Of("f1"), 2, folds);
  ASSERT_TRUE(tuned.threshold.has_value());
  EXPECT_LT(*tuned.threshold, 0.45);
  EXPECT_GT(ScoreOf("f1", 2, folds, tuned), ScoreOf("f1", 2, folds, Tuned()) + 0.02);
  EXPECT_EQ(Tune(Of("f1"), 2, Folds(150, 2, 1.0, 3)), Tuned()) << "150 rows are too few";
  EXPECT_EQ(Tune(Of("f1"), 3, Folds(4000, 3, 1.0, 3)), Tuned()) << "three classes";
  EXPECT_EQ(Tune(Of("accuracy"), 2, folds), Tuned());
}

TEST(TunedTest, TheTemperatureKeepsSumsAndLabels) {
  std::vector<float> values = {0.2f, 0.8f, 0.5f, 0.5f, 0.0f, 1.0f};
  ApplyTemperature(2, 2, absl::MakeSpan(values));
  EXPECT_THAT(values, Pointwise(FloatNear(1e-6f), {1.0f / 3, 2.0f / 3, 0.5f, 0.5f, 0.0f, 1.0f}));
  std::vector<float> same = {0.2f, 0.7f};
  ApplyTemperature(1, 2, absl::MakeSpan(same));
  EXPECT_THAT(same, Pointwise(FloatNear(0), {0.2f, 0.7f}));
}

TEST(TunedTest, ALabelFollowsTheThresholdOfTwoClasses) {
  const std::vector<float> row = {0.7f, 0.3f};
  EXPECT_EQ(LabelOf(row, std::nullopt), 0u);
  EXPECT_EQ(LabelOf(row, 0.25), 1u);
  EXPECT_EQ(LabelOf(row, 0.35), 0u);
  const std::vector<float> even = {0.5f, 0.5f};
  EXPECT_EQ(LabelOf(even, std::nullopt), 0u) << "the first of equal ones";
  const std::vector<float> three = {0.2f, 0.5f, 0.3f};
  EXPECT_EQ(LabelOf(three, 0.1), 1u) << "a threshold is of two classes";
}

// Rows of a score and the gains of two classes.
TEST(TunedTest, ComponentsAreChosenWhereTheyGain) {
  const std::vector<float> rows = {0.5f, 0.1f, -0.2f, 0.7f, -0.05f, 0.1f};
  EXPECT_EQ(ChooseComponents(3, rows), std::vector<int>{0});
  EXPECT_NEAR(GainOf({0}, 3, rows), 0.025, 1e-7);
  EXPECT_NEAR(GainOf({0, 1}, 3, rows), -0.025, 1e-7);
  EXPECT_EQ(GainOf({7}, 3, rows), 0);
  const std::vector<float> equal = {0.5f, 0.0f, 0.7f, 0.0f};
  EXPECT_TRUE(ChooseComponents(2, equal).empty());
  EXPECT_TRUE(ChooseComponents(1, equal).empty());
}

}  // namespace
}  // namespace traind
