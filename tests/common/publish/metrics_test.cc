#include "common/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "common/metrics/row_scorer.h"

namespace traind {
namespace {

using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(MetricsTest, ScoresEqualThoseOfScikitLearn) {
  std::ifstream file("tests/common/publish/golden/metrics.json");
  const auto golden = nlohmann::json::parse(file, nullptr, false);
  ASSERT_FALSE(golden.is_discarded());
  int checked = 0;
  for (const auto& item : golden["cases"]) {
    for (const auto& [name, expected] : item["scores"].items()) {
      SCOPED_TRACE(item["name"].get<std::string>() + ", " + name);
      const Metric metric = MetricByName(name).value();
      double score;
      if (IsClassification(metric)) {
        score = Score(metric, item["probabilities"].get<std::vector<float>>(),
                      item["classes"].get<int>(), item["labels"].get<std::vector<int32_t>>());
      } else {
        score = Score(metric, item["predicted"].get<std::vector<float>>(),
                      item["target"].get<std::vector<float>>(), item["outputs"].get<size_t>());
      }
      // scikit-learn keeps the logarithms of float32 input in float32.
      const double tolerance = metric == *MetricByName("logloss") ? 1e-6 : 1e-12;
      EXPECT_NEAR(score, expected.get<double>(), tolerance * std::max(1.0, std::abs(score)));
      ++checked;
    }
  }
  EXPECT_EQ(checked, 48);
}

TEST(MetricsTest, SmapeIsInPercentUpTo200) {
  EXPECT_DOUBLE_EQ(Score(*MetricByName("smape"), {1, 0, 3}, {1, 0, -3}), 200.0 / 3);
  EXPECT_DOUBLE_EQ(Score(*MetricByName("smape"), {1}, {3}), 100);
}

TEST(MetricsTest, ThePinballLossIsOneOfALevelWhichItsNameTells) {
  const Metric nine = AtLevel(*MetricByName("pinball"), 0.9);
  EXPECT_TRUE(HasLevel(nine));
  EXPECT_FALSE(HasLevel(*MetricByName("mae")));
  EXPECT_EQ(MetricName(nine), "pinball_q0.9");
  EXPECT_EQ(nine, *MetricByName("pinball_q0.9"));
  EXPECT_EQ(nine, AtLevel(AtLevel(*MetricByName("pinball"), 0.25), 0.9));
  EXPECT_NE(nine, *MetricByName("pinball_q0.1"));
  EXPECT_DOUBLE_EQ(Score(nine, {1, 3, 7}, {3, 1, kNan}), (0.9 * 2 + 0.1 * 2) / 2);
  EXPECT_DOUBLE_EQ(Score(*MetricByName("pinball_q0.2"), {1}, {3}), 0.4);
  // At the median it is half the mean absolute error.
  EXPECT_DOUBLE_EQ(Score(*MetricByName("pinball"), {1, 5}, {3, 1}), 1.5);
  const std::vector<float> targets = {3, 1};
  RowScorer scorer(nine, 1, absl::MakeConstSpan(targets));
  scorer.values()[0] = 1;
  scorer.values()[1] = 3;
  EXPECT_DOUBLE_EQ(scorer.Score(), 1);
  for (const char* name : {"pinball_q", "pinball_q1", "pinball_q0", "pinball_qx", "mae_q0.5"}) {
    EXPECT_FALSE(MetricByName(name).ok()) << name;
  }
}

TEST(MetricsTest, OfSeveralTargetsTheScoresAreAveraged) {
  const std::vector<float> predicted = {1, 10, 2, 30, 3, 20}, targets = {1, 12, 4, 30, 2, kNan};
  for (const Metric metric :
       {*MetricByName("rmse"), *MetricByName("mae"), *MetricByName("r2"), *MetricByName("smape")}) {
    const double first = Score(metric, {1, 2, 3}, {1, 4, 2});
    const double second = Score(metric, {10, 30, 20}, {12, 30, kNan});
    EXPECT_DOUBLE_EQ(Score(metric, predicted, targets, 2), (first + second) / 2);
    EXPECT_DOUBLE_EQ(Score(metric, {1, 2, 3}, {1, 4, 2}, 1), first);
  }
}

TEST(MetricsTest, RowsWithoutALabelAreLeftOut) {
  const std::vector<float> p = {0.9f, 0.1f, 0.2f, 0.8f, 0.1f, 0.9f, 0.3f, 0.7f};
  EXPECT_DOUBLE_EQ(Score(*MetricByName("accuracy"), p, 2, {0, -1, -2, 0}), 0.5);
  EXPECT_DOUBLE_EQ(Score(*MetricByName("mae"), {1, 2, 3}, {2, kNan, 3}), 0.5);
}

TEST(MetricsTest, ARowScorerGivesTheSameScores) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform;
  std::vector<float> probabilities, targets;
  std::vector<int32_t> labels;
  for (int i = 0; i < 300; ++i) {
    const float p = std::round(uniform(random) * 40) / 40;  // with ties
    probabilities.insert(probabilities.end(), {p, 1 - p});
    labels.push_back(i % 17 == 0 ? -1 : i % 3 == 0);
    targets.insert(targets.end(), {i % 13 == 0 ? kNan : uniform(random), uniform(random)});
  }
  for (const Metric metric : MetricsFor("classification")) {
    RowScorer scorer(metric, 2, absl::MakeConstSpan(labels));
    std::copy(probabilities.begin(), probabilities.end(), scorer.values().begin());
    EXPECT_EQ(scorer.Score(), Score(metric, probabilities, 2, labels)) << MetricName(metric);
  }
  for (const Metric metric : MetricsFor("regression")) {
    RowScorer scorer(metric, 2, absl::MakeConstSpan(targets));
    std::copy(probabilities.begin(), probabilities.end(), scorer.values().begin());
    EXPECT_EQ(scorer.Score(), Score(metric, probabilities, targets, 2)) << MetricName(metric);
  }
}

TEST(MetricsTest, TheAreaCountsPairsWhateverTheSign) {
  // There are 2 x 3 pairs: 4 are in order and one is tied; scores of a margin may be below 0.
  const std::vector<float> values = {0, 2, 0, -1, 0, -3, 0, -1, 0, 0.5f};
  EXPECT_DOUBLE_EQ(Score(*MetricByName("auc"), values, 2, {1, 1, 0, 0, 0}), 4.5 / 6);
}

TEST(MetricsTest, WithoutRowsOrWithOneClassThereIsNoScore) {
  EXPECT_TRUE(std::isnan(Score(*MetricByName("accuracy"), {}, 2, {})));
  EXPECT_TRUE(std::isnan(Score(*MetricByName("logloss"), {0.5f, 0.5f}, 2, {-1})));
  EXPECT_TRUE(std::isnan(Score(*MetricByName("auc"), {0.5f, 0.5f, 0.4f, 0.6f}, 2, {1, 1})));
  EXPECT_TRUE(std::isnan(Score(*MetricByName("rmse"), {1}, {kNan})));
  EXPECT_TRUE(std::isnan(Score(*MetricByName("r2"), {1}, {1})));
}

TEST(MetricsTest, NotANumberIsWorseThanAnything) {
  const double nan = std::nan("");
  EXPECT_TRUE(Better(*MetricByName("accuracy"), 0.1, nan));
  EXPECT_FALSE(Better(*MetricByName("accuracy"), nan, 0.1));
  EXPECT_FALSE(Better(*MetricByName("rmse"), nan, nan));
  EXPECT_TRUE(Better(*MetricByName("rmse"), 1, 2));
  EXPECT_FALSE(Better(*MetricByName("rmse"), 2, 2));
  EXPECT_TRUE(Better(*MetricByName("r2"), 0.5, -1));
}

TEST(MetricsTest, UnknownNameListsTheKnownOnes) {
  const auto status = MetricByName("acuracy").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("accuracy, logloss, auc, f1, rmse"));
  for (const char* name : {"accuracy", "logloss", "auc", "f1", "rmse", "mae", "r2", "smape"}) {
    EXPECT_EQ(MetricName(MetricByName(name).value()), name);
  }
}

// Behind the score of a volume's mask stands what it may gain (AnswerScore).
TEST(MetricsTest, OfAVolumeOnlyTheFirstValueIsAScore) {
  const Metric dice = *MetricByName("dice");
  const std::vector<float> values = {0.5f, 0.25f, 0.75f, -0.5f}, targets = {1, 0, 1, 0};
  EXPECT_EQ(Score(dice, values, targets, 2), 0.625);
  RowScorer scorer(dice, 2, absl::MakeConstSpan(targets));
  std::copy(values.begin(), values.end(), scorer.values().begin());
  EXPECT_EQ(scorer.Score(), 0.625);
}

}  // namespace
}  // namespace traind
