#include "common/spec/automatic_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/common/spec/spec_fixture.h"

namespace traind {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

v1::JobSpec SpecWithoutTask() {
  v1::JobSpec spec = GoodSpec();
  spec.clear_api();
  spec.clear_task();
  return spec;
}

TEST(AutomaticRulesTest, DataAloneAreASpec) {
  EXPECT_EQ(Errors(SpecWithoutTask()), "");
  EXPECT_EQ(TypeOfSpec(SpecWithoutTask()).type, "");
  EXPECT_EQ(ResolveSpec(GoodSpec()).api(), "v1");
}

TEST(AutomaticRulesTest, ColumnsKnownAheadAreOfForecastsByTrees) {
  v1::JobSpec spec = SpecWithoutTask();
  spec.mutable_data()->set_time("t");
  spec.mutable_data()->add_known_ahead("price");
  EXPECT_EQ(Errors(spec), "");
  EXPECT_EQ(TypeOfSpec(spec).because, "data.known_ahead is set");
  spec.mutable_model()->mutable_lightgbm();
  EXPECT_EQ(Errors(spec), "");
  spec.mutable_model()->mutable_mlp();
  EXPECT_THAT(Errors(spec), HasSubstr("data.known_ahead is used by trees alone"));
  spec.mutable_model()->mutable_lightgbm();
  spec.mutable_data()->set_horizon(0);
  EXPECT_THAT(Errors(spec), HasSubstr("data.known_ahead is not needed with data.horizon 0"));
  spec.mutable_data()->clear_horizon();
  spec.mutable_task()->set_type("regression");
  EXPECT_THAT(Errors(spec), HasSubstr("data.known_ahead is of task.type forecasting only"));
}

TEST(AutomaticRulesTest, QuantilesAreOfNumbersAndAscend) {
  v1::JobSpec spec = SpecWithoutTask();
  for (const double level : {0.1, 0.9}) spec.mutable_predictions()->add_quantiles(level);
  EXPECT_EQ(Errors(spec), "");
  EXPECT_EQ(TypeOfSpec(spec).type, "regression");
  EXPECT_EQ(TypeOfSpec(spec).because, "predictions.quantiles is set");
  spec.mutable_predictions()->set_quantiles(1, 0.1);
  EXPECT_THAT(Errors(spec), HasSubstr("predictions.quantiles[1] 0.1 is not above 0.1"));
  spec.mutable_predictions()->set_quantiles(1, 1);
  EXPECT_THAT(Errors(spec), HasSubstr("predictions.quantiles[1]"));
  spec.mutable_predictions()->set_quantiles(1, 0.9);
  spec.mutable_task()->set_type("classification");
  EXPECT_THAT(Errors(spec), HasSubstr("predictions.quantiles are of numbers"));
}

TEST(AutomaticRulesTest, WhatTheSpecSaysTellsTheType) {
  v1::JobSpec spec = SpecWithoutTask();
  spec.mutable_task()->set_metric("rmse");
  EXPECT_EQ(TypeOfSpec(spec).type, "regression");
  EXPECT_EQ(TypeOfSpec(spec).because, "task.metric is rmse");
  spec.mutable_task()->set_metric("auc");
  EXPECT_EQ(TypeOfSpec(spec).type, "classification");
  spec.mutable_task()->clear_metric();
  for (const char* kind : {"huber", "quantile", "poisson", "tweedie"}) {
    spec.mutable_train()->mutable_loss()->set_kind(kind);
    EXPECT_EQ(TypeOfSpec(spec).type, "regression") << kind;
  }
  spec.mutable_train()->mutable_loss()->clear_kind();
  spec.mutable_train()->mutable_loss()->set_class_weights("balanced");
  EXPECT_EQ(TypeOfSpec(spec).type, "classification");
  spec.clear_train();
  spec.mutable_data()->set_horizon(2);
  EXPECT_EQ(TypeOfSpec(spec).type, "forecasting");
  EXPECT_THAT(Errors(spec), HasSubstr("data.time is missing"));
  spec.mutable_task()->set_type("classification");
  EXPECT_EQ(TypeOfSpec(spec).type, "classification");
  EXPECT_EQ(TypeOfSpec(spec).because, "");
  v1::JobSpec volume;
  volume.mutable_data()->set_train("/data/train.csv");
  volume.mutable_data()->mutable_volume();
  EXPECT_EQ(TypeOfSpec(volume).type, "segmentation");
  EXPECT_EQ(ResolveSpec(volume).task().metric(), "dice");
}

TEST(AutomaticRulesTest, ARandomForestNeedsAPartOfTheRowsOrOfTheColumns) {
  v1::JobSpec spec = GoodSpec();
  v1::LightgbmSpec& trees = *spec.mutable_model()->mutable_lightgbm();
  trees.set_boosting("rf");
  EXPECT_THAT(Errors(spec), HasSubstr("model.lightgbm.boosting 'rf' needs bagging_freq"));
  trees.set_bagging_fraction(0.6);
  EXPECT_NE(Errors(spec), "");
  trees.set_bagging_freq(1);
  EXPECT_EQ(Errors(spec), "");
  trees.clear_bagging_freq();
  trees.set_feature_fraction(0.5);
  EXPECT_EQ(Errors(spec), "");
}

TEST(AutomaticRulesTest, KindsThatDoNotLearnTheLossAreLeftOutOrRefused) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_task()->set_type("regression");
  spec.mutable_model()->mutable_automatic();
  v1::LossSpec& loss = *spec.mutable_train()->mutable_loss();
  for (const char* kind : {"poisson", "tweedie", "quantile"}) {
    loss.set_kind(kind);
    EXPECT_EQ(Errors(spec), "");
    EXPECT_THAT(KindsToTry(spec), ElementsAre("lightgbm", "xgboost", "mlp")) << kind;
  }
  EXPECT_TRUE(MayTryForest(spec));
  spec.mutable_model()->mutable_automatic()->add_kinds("kernel");
  EXPECT_THAT(Errors(spec), HasSubstr("model.automatic.kinds[0] 'kernel' learns the squared error, "
                                      "and not train.loss.kind quantile"));
  spec.mutable_model()->mutable_kernel();
  EXPECT_THAT(Errors(spec), HasSubstr("model.kernel learns the squared error"));
  loss.set_kind("huber");
  EXPECT_EQ(Errors(spec), "");
  v1::LightgbmSpec& forest = *spec.mutable_model()->mutable_lightgbm();
  forest.set_boosting("rf");
  forest.set_feature_fraction(0.5);
  EXPECT_EQ(Errors(spec), "");
  for (const char* kind : {"poisson", "tweedie", "smape"}) {
    loss.set_kind(kind);
    EXPECT_FALSE(MayTryForest(spec)) << kind;
    EXPECT_THAT(Errors(spec), HasSubstr(std::string("model.lightgbm.boosting 'rf' does not learn "
                                                    "train.loss.kind ") +
                                        kind));
  }
}

TEST(AutomaticRulesTest, ATreeHasALimit) {
  v1::JobSpec spec = GoodSpec();
  v1::XgboostSpec& trees = *spec.mutable_model()->mutable_xgboost();
  trees.set_max_depth(0);
  EXPECT_THAT(Errors(spec), HasSubstr("model.xgboost.max_depth '0' needs max_leaves"));
  trees.set_max_leaves(31);
  EXPECT_EQ(Errors(spec), "");
  trees.clear_max_leaves();
  trees.set_grow_policy("lossguide");
  EXPECT_EQ(Errors(spec), "");
}

TEST(AutomaticRulesTest, TreesTakeTablesWithOneTargetOnOneCore) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_model()->mutable_xgboost();
  EXPECT_EQ(Errors(spec), "");
  spec.mutable_resources()->set_slots(2);
  EXPECT_THAT(Errors(spec), HasSubstr("model.xgboost trains a fold on one slot"));
  spec.mutable_resources()->clear_slots();
  spec.mutable_resources()->set_device("cuda");
  EXPECT_THAT(Errors(spec), HasSubstr("model.xgboost trains on CPUs"));
  spec.clear_resources();
  spec.mutable_task()->set_type("forecasting");
  spec.mutable_data()->set_time("day");
  EXPECT_EQ(Errors(spec), "");
  spec.mutable_data()->set_horizon(0);
  EXPECT_THAT(Errors(spec), HasSubstr("model.xgboost forecasts from data.horizon 1 on"));
  spec.mutable_data()->clear_horizon();
  spec.mutable_task()->set_type("regression");
  spec.mutable_data()->clear_target();
  spec.mutable_data()->add_targets("a");
  spec.mutable_data()->add_targets("b");
  EXPECT_THAT(Errors(spec), HasSubstr("model.xgboost learns one target"));
  spec = GoodSpec();
  spec.mutable_model()->mutable_xgboost();
  spec.mutable_data()->mutable_image();
  EXPECT_THAT(Errors(spec), HasSubstr("model takes no images"));
  spec.mutable_data()->clear_image();
  spec.mutable_model()->mutable_pretrained()->set_file("/w.safetensors");
  EXPECT_THAT(Errors(spec), HasSubstr("model.xgboost has no weights"));
}

TEST(AutomaticRulesTest, KindsThatDoNotFitAreRefusedOnlyWhereTheSpecNamesThem) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_model()->mutable_automatic();
  EXPECT_THAT(KindsToTry(spec), ElementsAre("lightgbm", "xgboost", "mlp", "kernel"));
  spec.mutable_task()->set_type("forecasting");
  spec.mutable_data()->set_time("day");
  EXPECT_THAT(KindsToTry(spec), ElementsAre("lightgbm", "xgboost", "mlp"));
  spec = GoodSpec();
  spec.mutable_model()->mutable_automatic();
  spec.mutable_resources()->set_device("cuda");
  EXPECT_EQ(Errors(spec), "");
  EXPECT_THAT(KindsToTry(spec), ElementsAre("mlp"));
  v1::AutomaticSpec& automatic = *spec.mutable_model()->mutable_automatic();
  automatic.add_kinds("mlp");
  automatic.add_kinds("lightgbm");
  EXPECT_THAT(Errors(spec), HasSubstr("model.automatic.kinds[1] 'lightgbm' trains on CPUs"));
  spec.clear_resources();
  EXPECT_EQ(Errors(spec), "");
  EXPECT_THAT(KindsToTry(spec), ElementsAre("mlp", "lightgbm"));
  automatic.add_kinds("mlp");
  EXPECT_THAT(Errors(spec), HasSubstr("model.automatic.kinds[2] 'mlp' is there twice"));
  automatic.add_kinds("knn");
  EXPECT_THAT(Errors(spec), HasSubstr("'knn' must be one of: lightgbm, xgboost, mlp, kernel"));
}

TEST(AutomaticRulesTest, RollingIsOfForecastsThatUseThePast) {
  v1::JobSpec spec = SpecWithoutTask();
  spec.mutable_data()->set_rolling(true);
  spec.mutable_data()->set_time("day");
  EXPECT_EQ(TypeOfSpec(spec).because, "data.rolling is set");
  spec.mutable_task()->set_type("forecasting");
  EXPECT_EQ(Errors(spec), "");
  spec.mutable_data()->set_horizon(0);
  EXPECT_THAT(Errors(spec), HasSubstr("data.rolling needs a data.horizon of 1 or more"));
  spec.mutable_data()->clear_horizon();
  spec.mutable_task()->set_type("regression");
  EXPECT_THAT(Errors(spec), HasSubstr("data.rolling is of task.type forecasting only"));
}

TEST(AutomaticRulesTest, KernelsTakeWhatTreesTakeAndNoForecasts) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_model()->mutable_kernel();
  EXPECT_EQ(Errors(spec), "");
  spec.mutable_resources()->set_slots(2);
  EXPECT_THAT(Errors(spec), HasSubstr("model.kernel trains a fold on one slot"));
  spec.clear_resources();
  spec.mutable_model()->mutable_kernel()->set_max_rows(5);
  EXPECT_THAT(Errors(spec), HasSubstr("model.kernel.max_rows"));
  spec.mutable_model()->mutable_kernel()->clear_max_rows();
  spec.mutable_task()->set_type("forecasting");
  spec.mutable_data()->set_time("day");
  EXPECT_THAT(Errors(spec), HasSubstr("model.kernel does not forecast; take lightgbm"));
}

// The model of a resolved spec that names none, and to which `change` has added something.
std::string ModelOf(const std::function<void(v1::JobSpec&)>& change) {
  v1::JobSpec spec = GoodSpec();
  change(spec);
  const v1::ModelSpec model = ResolveSpec(spec).model();
  return model.GetReflection()
      ->GetOneofFieldDescriptor(model, model.GetDescriptor()->FindOneofByName("architecture"))
      ->name();
}

TEST(AutomaticRulesTest, TablesThatNameNoModelGetSeveralKinds) {
  EXPECT_EQ(ModelOf([](auto&) {}), "automatic");
  EXPECT_EQ(ModelOf([](auto& spec) { spec.mutable_task()->set_type("regression"); }), "automatic");
  EXPECT_EQ(ModelOf([](auto& spec) { spec.set_preset("best"); }), "automatic");
  EXPECT_EQ(ModelOf([](auto& spec) {
              spec.mutable_task()->set_type("forecasting");
              spec.mutable_data()->set_time("day");
            }),
            "automatic");
  EXPECT_EQ(ModelOf([](auto& spec) { spec.mutable_model()->mutable_mlp(); }), "mlp");
}

TEST(AutomaticRulesTest, WhatTreesCannotLearnGetsANetwork) {
  EXPECT_EQ(ModelOf([](auto& spec) {
              spec.mutable_task()->set_type("forecasting");
              spec.mutable_data()->set_time("day");
              spec.mutable_data()->set_horizon(0);
            }),
            "mlp");
  EXPECT_EQ(ModelOf([](auto& spec) { spec.mutable_data()->mutable_image(); }), "cnn");
  EXPECT_EQ(ModelOf([](auto& spec) { spec.mutable_resources()->set_slots(2); }), "mlp");
  EXPECT_EQ(ModelOf([](auto& spec) { spec.mutable_resources()->set_device("cuda"); }), "mlp");
  EXPECT_EQ(ModelOf([](auto& spec) { spec.mutable_train()->set_seeds(2); }), "mlp");
  EXPECT_EQ(ModelOf([](auto& spec) {
              spec.mutable_model()->mutable_pretrained()->set_file("/w.safetensors");
            }),
            "mlp");
}

TEST(AutomaticRulesTest, TheEpochsOfAPlanAreThoseOfTheFirstTrial) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_model()->mutable_mlp();
  EXPECT_EQ(EpochsAsked(ResolveSpec(spec)), 20);
  spec.mutable_model()->mutable_xgboost()->set_num_boost_round(30);
  EXPECT_EQ(EpochsAsked(ResolveSpec(spec)), 30);
  spec.mutable_model()->mutable_kernel();
  EXPECT_EQ(EpochsAsked(ResolveSpec(spec)), 9);
  spec.mutable_model()->mutable_kernel()->set_gamma(0.5);
  EXPECT_EQ(EpochsAsked(ResolveSpec(spec)), 5);
  spec = ResolveSpec(GoodSpec());
  spec.add_trials()->mutable_train()->set_epochs(40);
  EXPECT_EQ(EpochsAsked(spec), 40);
  spec.mutable_trials(0)->mutable_model()->mutable_lightgbm()->set_num_iterations(400);
  EXPECT_EQ(EpochsAsked(spec), 100);
}

TEST(AutomaticRulesTest, TrialsStandInForSeedsAndAreMixedByGreedySelection) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_model()->mutable_automatic();
  EXPECT_EQ(ResolveSpec(spec).predictions().ensemble(), "greedy");
  EXPECT_EQ(ResolveSpec(spec).model().automatic().trials(), 60);
  spec.mutable_predictions()->set_ensemble("mean");
  EXPECT_EQ(ResolveSpec(spec).predictions().ensemble(), "mean");
  spec.mutable_train()->set_seeds(3);
  EXPECT_THAT(Errors(spec), HasSubstr("train.seeds is not of model.automatic"));
  spec.mutable_train()->clear_seeds();
  spec.mutable_model()->mutable_automatic()->set_trials(-1);
  EXPECT_THAT(Errors(spec), HasSubstr("model.automatic.trials '-1' is below the minimum, 1"));
}

TEST(AutomaticRulesTest, MoreTrialsMayFollowThoseOfTheJobBefore) {
  v1::JobSpec source = GoodSpec();
  source.mutable_model()->mutable_automatic()->add_kinds("lightgbm");
  source.add_trials()->set_name("lightgbm");
  source = ResolveSpec(source);
  v1::JobSpec spec;
  spec.set_from("adult-1");
  spec.mutable_model()->mutable_automatic()->set_trials(90);
  const v1::JobSpec merged = GoOnFrom(source, spec);
  EXPECT_EQ(merged.trials_size(), 1);
  EXPECT_THAT(FieldsAgainstSource(source, merged), IsEmpty());
  spec.mutable_model()->mutable_automatic()->add_kinds("mlp");
  EXPECT_THAT(FieldsAgainstSource(source, GoOnFrom(source, spec)),
              ElementsAre("model.automatic.kinds"));
  spec.mutable_model()->mutable_lstm();
  EXPECT_EQ(GoOnFrom(source, spec).trials_size(), 0);
}

}  // namespace
}  // namespace traind
