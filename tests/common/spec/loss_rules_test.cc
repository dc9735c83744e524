// Losses of numbers, and the metric that judges quantiles.
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/spec/spec_rules.h"
#include "tests/common/spec/spec_fixture.h"

namespace traind {
namespace {

TEST(LossRulesTest, LossesOfNumbersHaveTheirOwnFieldsAndRanges) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_task()->set_type("regression");
  v1::LossSpec& loss = *spec.mutable_train()->mutable_loss();
  for (const char* kind : {"poisson", "tweedie", "quantile"}) {
    loss.set_kind(kind);
    spec.mutable_task()->set_type("regression");
    EXPECT_EQ(Errors(spec), "") << kind;
    spec.mutable_task()->set_type("forecasting");
    spec.mutable_data()->set_time("day");
    EXPECT_EQ(Errors(spec), absl::StrCat("train.loss.kind: train.loss.kind '", kind,
                                         "' does not fit forecasting"));
    spec.mutable_data()->clear_time();
  }
  spec.mutable_task()->set_type("regression");
  for (const double level : {0.001, 0.5, 0.999}) {
    loss.set_quantile(level);
    EXPECT_EQ(Errors(spec), "") << level;
  }
  for (const double level : {0.0, 1.0, -0.5}) {
    loss.set_quantile(level);
    EXPECT_THAT(Errors(spec), testing::HasSubstr("train.loss.quantile")) << level;
  }
  loss.set_quantile(0.9);
  loss.set_kind("poisson");
  EXPECT_EQ(Errors(spec),
            "train.loss.quantile: train.loss.quantile is of train.loss.kind quantile only");
  loss.clear_quantile();
  loss.set_tweedie_power(1.2);
  EXPECT_EQ(
      Errors(spec),
      "train.loss.tweedie_power: train.loss.tweedie_power is of train.loss.kind tweedie only");
  loss.set_kind("tweedie");
  EXPECT_EQ(Errors(spec), "");
  for (const double power : {1.0, 2.0}) {
    loss.set_tweedie_power(power);
    EXPECT_THAT(Errors(spec), testing::HasSubstr("train.loss.tweedie_power")) << power;
  }
}

TEST(LossRulesTest, OnlyARegressionLearnsATransformedTarget) {
  v1::JobSpec spec = GoodSpec();
  for (const char* transform : {"log", "yeo_johnson"}) {
    const std::string said =
        absl::StrCat("train.target_transform: train.target_transform '", transform, "' ");
    spec.mutable_train()->clear_loss();
    spec.mutable_train()->set_target_transform(transform);
    for (const char* type : {"classification", "forecasting"}) {
      spec.mutable_task()->set_type(type);
      spec.mutable_data()->set_time("day");
      EXPECT_EQ(Errors(spec), said + "is of task.type regression only");
      spec.mutable_data()->clear_time();
    }
    spec.mutable_task()->set_type("regression");
    for (const char* loss : {"", "mse", "mae", "huber", "quantile"}) {
      spec.mutable_train()->mutable_loss()->set_kind(loss);
      EXPECT_EQ(Errors(spec), "") << loss;
    }
    for (const char* loss : {"poisson", "tweedie", "smape"}) {
      spec.mutable_train()->mutable_loss()->set_kind(loss);
      EXPECT_EQ(Errors(spec), absl::StrCat(said, "contradicts train.loss.kind ", loss,
                                           ", which is of the target itself"));
    }
  }
  spec.mutable_train()->set_target_transform("none");
  EXPECT_EQ(Errors(spec), "");
  spec.mutable_train()->set_target_transform("sqrt");
  EXPECT_THAT(Errors(spec), testing::HasSubstr("train.target_transform"));
}

TEST(LossRulesTest, QuantilesAreJudgedByTheirOwnMetricAtTheirLevel) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_task()->set_type("regression");
  spec.mutable_task()->clear_metric();
  EXPECT_EQ(MetricOfJob(ResolveSpec(spec)), "rmse");
  spec.mutable_train()->mutable_loss()->set_kind("quantile");
  EXPECT_EQ(ResolveSpec(spec).task().metric(), "pinball");
  EXPECT_EQ(MetricOfJob(ResolveSpec(spec)), "pinball_q0.5");
  spec.mutable_train()->mutable_loss()->set_quantile(0.9);
  EXPECT_EQ(MetricOfJob(ResolveSpec(spec)), "pinball_q0.9");
  EXPECT_FALSE(HigherIsBetter(absl::string_view("pinball_q0.9")));
  spec.mutable_task()->set_metric("mae");
  EXPECT_EQ(Errors(spec), "");
  EXPECT_EQ(MetricOfJob(ResolveSpec(spec)), "mae");
  spec.mutable_task()->set_metric("pinball");
  EXPECT_EQ(Errors(spec), "");
  spec.clear_train();
  EXPECT_EQ(Errors(spec), "task.metric: task.metric 'pinball' needs train.loss.kind quantile");
}

}  // namespace
}  // namespace traind
