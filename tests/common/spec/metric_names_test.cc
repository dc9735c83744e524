// The spec's words for metrics and the metrics that there are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/metrics/metrics.h"
#include "common/spec/spec_rules.h"
#include "proto/field_rules.pb.h"
#include "proto/job.pb.h"

namespace traind {
namespace {

constexpr const char* kTaskTypes[] = {"classification", "regression", "forecasting",
                                      "segmentation"};

TEST(MetricNamesTest, TheSpecTakesExactlyTheMetricsThatThereAre) {
  const auto& rules =
      v1::TaskSpec::descriptor()->FindFieldByName("metric")->options().GetExtension(v1::rules);
  std::vector<std::string> names;
  for (const Metric metric : AllMetrics()) names.emplace_back(MetricName(metric));
  EXPECT_THAT(rules.one_of(), testing::ElementsAreArray(names));
}

TEST(MetricNamesTest, AMetricHasOneFunctionAndSuitsSomeTask) {
  for (const Metric metric : AllMetrics()) {
    const MetricKind& kind = metric.kind();
    EXPECT_EQ((kind.of_classes != nullptr) + (kind.of_values != nullptr) +
                  (kind.of_level != nullptr) + (kind.of_masks != nullptr),
              1)
        << kind.name;
  }
}

TEST(MetricNamesTest, EachTypeOfTaskHasOneDefault) {
  for (const char* type : kTaskTypes) {
    int defaults = 0;
    for (const Metric metric : MetricsFor(type)) defaults += metric.kind().is_default ? 1 : 0;
    EXPECT_EQ(defaults, 1) << type;
  }
  EXPECT_EQ(DefaultMetric("classification"), "accuracy");
  EXPECT_EQ(DefaultMetric("regression"), "rmse");
  EXPECT_EQ(DefaultMetric("forecasting"), "rmse");
  EXPECT_EQ(DefaultMetric("segmentation"), "dice");
}

// Scores of masks once passed for errors: of two folds the worse one counted as the better.
TEST(MetricNamesTest, TheDirectionIsThatOfTheMetricForEveryTask) {
  for (const char* name : {"accuracy", "auc", "f1", "r2", "dice", "iou"}) {
    EXPECT_TRUE(HigherIsBetter(absl::string_view(name))) << name;
  }
  for (const char* name : {"logloss", "rmse", "mae", "smape", "pinball", "pinball_q0.9"}) {
    EXPECT_FALSE(HigherIsBetter(absl::string_view(name))) << name;
  }
}

}  // namespace
}  // namespace traind
