#include "common/spec/search_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "common/search/range.h"
#include "common/spec/yaml_spec.h"
#include "tests/common/spec/spec_fixture.h"

namespace traind {
namespace {

using testing::HasSubstr;

v1::JobSpec Searching() {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_budget()->mutable_time()->set_seconds(60);
  spec.mutable_search();
  return spec;
}
v1::JobSpec Searching(const std::string& path, const std::string& range) {
  v1::JobSpec spec = Searching();
  (*spec.mutable_search()->mutable_space())[path] = range;
  return spec;
}
std::string Wrong(const std::string& path, const std::string& range) {
  return Errors(Searching(path, range));
}

TEST(SearchRulesTest, AFieldOfTheModelOrItsTrainingMayVary) {
  EXPECT_EQ(Wrong("model.lightgbm.num_leaves", "int(4, 64)"), "");
  EXPECT_EQ(Wrong("model.mlp.hidden", "choice([64], [128, 128])"), "");
  EXPECT_EQ(Wrong("train.optimizer.kind", "choice(adamw, sgd)"), "");
  v1::JobSpec spec = Searching("train.learning_rate", "log(1e-4, 1e-1)");
  spec.mutable_model()->mutable_cnn();
  spec.mutable_data()->mutable_image();
  EXPECT_EQ(Errors(spec), "");
}

TEST(SearchRulesTest, EachMistakeNamesItsPlace) {
  EXPECT_EQ(Wrong("model.lightgbm.num_leavs", "int(4, 64)"),
            "search.space.model.lightgbm.num_leavs: search.space.model.lightgbm.num_leavs is no "
            "field below model or train that a search may vary; did you mean "
            "'model.lightgbm.num_leaves'?");
  EXPECT_THAT(Wrong("num_leaves", "int(4, 64)"),
              HasSubstr("did you mean 'model.lightgbm.num_leaves'?"));
  EXPECT_THAT(Wrong("max_dept", "int(4, 9)"),
              HasSubstr("did you mean 'model.lightgbm.max_depth'?"));
  EXPECT_THAT(Wrong("data.folds", "int(2, 8)"), HasSubstr("is no field below model or train"));
  EXPECT_THAT(Wrong("train.seeds", "int(2, 8)"), HasSubstr("that a search may vary"));
  EXPECT_THAT(Wrong("model.lightgbm.num_leaves", "int(64, 4)"),
              HasSubstr("search.space.model.lightgbm.num_leaves 'int(64, 4)' has its ends "
                        "reversed; write int(4, 64)"));
  EXPECT_THAT(Wrong("model.lightgbm.learning_rate", "log(0, 1)"), HasSubstr("above 0"));
  EXPECT_THAT(Wrong("model.lightgbm.learning_rate", "choice(0.1)"), HasSubstr("one value"));
  EXPECT_THAT(Wrong("model.lightgbm.feature_fraction", "uniform(0.5, 1.5)"),
              HasSubstr("feature_fraction '1.5' is above the maximum, 1"));
  EXPECT_THAT(Wrong("model.lightgbm.num_leaves", "uniform(4, 64.5)"),
              HasSubstr("needs whole numbers"));
  EXPECT_THAT(Wrong("model.lightgbm.boosting", "choice(gbdt, drat)"),
              HasSubstr("did you mean 'dart'?"));
  EXPECT_THAT(Wrong("model.lightgbm.extra_trees", "uniform(0, 1)"),
              HasSubstr("is of numbers; list the values of this field"));
  EXPECT_THAT(Wrong("train.dropout", "uniform(0, 1)"), HasSubstr("did you mean 'model."));
}

TEST(SearchRulesTest, TheSizesOfANamedNetworkDoNotVary) {
  v1::JobSpec spec = Searching();
  spec.mutable_data()->mutable_image();
  v1::ModelSpec& model = *spec.mutable_model();
  model.mutable_cnn();
  EXPECT_TRUE(ResolveSpec(spec).search().space().contains("model.cnn.width"));
  model.mutable_cnn()->set_architecture("resnet18");
  const v1::SearchSpec search = ResolveSpec(spec).search();
  EXPECT_FALSE(search.space().contains("model.cnn.width"));
  EXPECT_TRUE(search.space().contains("model.cnn.dropout"));
  auto& space = *spec.mutable_search()->mutable_space();
  space["model.cnn.width"] = "choice(32, 64)";
  EXPECT_THAT(Errors(spec), HasSubstr("model.cnn.width is fixed by architecture: resnet18"));
  space.clear();
  space["model.cnn.architecture"] = "choice(resnet18, resnet34)";
  EXPECT_EQ(Errors(spec), "");
  model.mutable_pretrained()->set_file("/w.safetensors");
  EXPECT_THAT(Errors(spec), HasSubstr("model.cnn.architecture is fixed by architecture: resnet18"));

  v1::JobSpec texts = Searching();
  texts.mutable_data()->mutable_text()->add_columns("words");
  texts.mutable_model()->mutable_text()->set_architecture("bert");
  texts.mutable_model()->mutable_pretrained()->set_folder("/bert");
  EXPECT_FALSE(ResolveSpec(texts).search().space().contains("model.text.layers"));
}

TEST(SearchRulesTest, TheSizesOfLowRankChangesMayVary) {
  v1::JobSpec spec = Searching("model.lora.rank", "log(2, 64)");
  (*spec.mutable_search()->mutable_space())["model.lora.alpha"] = "choice(8, 16, 32)";
  spec.mutable_data()->mutable_text()->add_columns("words");
  v1::ModelSpec& model = *spec.mutable_model();
  model.mutable_text()->set_architecture("bert");
  model.mutable_pretrained()->set_folder("/bert");
  EXPECT_THAT(Errors(spec), HasSubstr("search.space.model.lora.rank needs model.lora in the spec"));
  model.mutable_lora();
  EXPECT_EQ(Errors(spec), "");
  EXPECT_EQ(ResolveSpec(spec).search().space().at("model.lora.rank"), "log_int(2, 64)");
  EXPECT_EQ(SearchedValue("model.lora.rank", ResolveSpec(spec)), "8");
  v1::JobSpec trial = ResolveSpec(spec);
  ASSERT_TRUE(SetSearched("model.lora.rank", "32", trial).ok());
  EXPECT_EQ(trial.model().lora().rank(), 32);
  EXPECT_TRUE(trial.model().has_text());
  (*spec.mutable_search()->mutable_space())["model.lora.rank"] = "int(0, 8)";
  EXPECT_THAT(Errors(spec), HasSubstr("rank '0' is below the minimum, 1"));
  // They name no kind of model, and trees have none.
  EXPECT_EQ(KindOfSpace(Searching("model.lora.rank", "int(2, 8)").search()), "");
  spec = Searching("model.lora.rank", "int(2, 8)");
  spec.mutable_model()->mutable_lightgbm();
  EXPECT_THAT(Errors(spec), HasSubstr("is of networks; model.lightgbm has settings of its own"));
}

TEST(SearchRulesTest, TheUsualSpaceOfAPretrainedNetworkHasItsRates) {
  v1::JobSpec spec = Searching();
  spec.mutable_data()->mutable_text()->add_columns("words");
  v1::ModelSpec& model = *spec.mutable_model();
  model.mutable_text()->set_architecture("bert");
  model.mutable_pretrained()->set_folder("/bert");
  const auto space = [&] { return ResolveSpec(spec).search().space(); };
  EXPECT_EQ(space().at("train.learning_rate"), "log(1e-05, 0.0003)");
  EXPECT_FALSE(space().contains("model.lora.rank"));
  model.mutable_lora()->set_alpha(32);
  EXPECT_EQ(space().at("train.learning_rate"), "log(0.0001, 0.003)");
  EXPECT_TRUE(space().contains("model.lora.rank"));
  EXPECT_FALSE(space().contains("model.lora.alpha")) << "the spec sets it";
}

TEST(SearchRulesTest, TheSpaceIsOfOneKindOfModel) {
  v1::JobSpec spec = Searching("model.mlp.dropout", "uniform(0, 0.5)");
  spec.mutable_model()->mutable_lightgbm();
  EXPECT_THAT(Errors(spec), HasSubstr("is of model.mlp, but the model is lightgbm"));
  spec = Searching("model.mlp.dropout", "uniform(0, 0.5)");
  (*spec.mutable_search()->mutable_space())["model.xgboost.gamma"] = "uniform(0, 1)";
  EXPECT_THAT(Errors(spec), HasSubstr("is of model.xgboost, but the model is mlp"));
  spec = Searching("train.learning_rate", "log(1e-4, 1e-1)");
  spec.mutable_model()->mutable_lightgbm();
  EXPECT_THAT(Errors(spec), HasSubstr("is of networks; model.lightgbm has settings of its own"));
  // Trees learn other losses and scales, too.
  for (const auto& [path, range] : {std::make_pair("train.loss.kind", "choice(mse, mae)"),
                                    {"train.target_transform", "choice(none, log, yeo_johnson)"}}) {
    spec = Searching(path, range);
    spec.mutable_model()->mutable_lightgbm();
    spec.mutable_task()->set_type("regression");
    EXPECT_EQ(Errors(spec), "") << path;
  }
  spec = Searching();
  spec.mutable_model()->mutable_automatic();
  EXPECT_THAT(Errors(spec), HasSubstr("varies one kind of model, but `model: auto` tries several"));
}

TEST(SearchRulesTest, ASearchNeedsABudgetAndTheJobsMetric) {
  v1::JobSpec spec = Searching();
  spec.clear_budget();
  EXPECT_THAT(Errors(spec), HasSubstr("search: search needs budget.time or budget.deadline"));
  spec = Searching();
  spec.mutable_search()->set_metric("auc");
  EXPECT_THAT(Errors(spec), HasSubstr("'auc' is not the Job's metric, accuracy; set task.metric"));
  spec.mutable_task()->clear_type();  // nothing tells the Job's metric yet
  EXPECT_EQ(Errors(spec), "");
  spec.mutable_search()->set_metric("rocauc");
  EXPECT_THAT(Errors(spec), HasSubstr("search.metric unknown metric 'rocauc'; known: accuracy"));
  spec = Searching();
  spec.mutable_search()->set_metric("auc");
  spec.mutable_task()->set_metric("auc");
  EXPECT_EQ(Errors(spec), "");
  spec.mutable_train()->set_seeds(2);
  EXPECT_THAT(Errors(spec), HasSubstr("train.seeds is not of a search"));
  spec.clear_train();
  spec.mutable_search()->set_trials(1);
  EXPECT_THAT(Errors(spec), HasSubstr("search.trials '1' is below the minimum, 2"));
}

TEST(SearchRulesTest, AGridIsFinite) {
  v1::JobSpec spec = Searching("model.lightgbm.learning_rate", "log(1e-2, 1)");
  spec.mutable_search()->set_method("grid");
  EXPECT_THAT(Errors(spec), HasSubstr("too many values for a grid of at most 1000 points; name "
                                      "some in a list, or give steps"));
  (*spec.mutable_search()->mutable_space())["model.lightgbm.learning_rate"] = "log(1e-2, 1, 3)";
  EXPECT_EQ(Errors(spec), "");
  EXPECT_EQ(ResolveSpec(spec).search().trials(), 3);
  (*spec.mutable_search()->mutable_space())["model.lightgbm.num_leaves"] = "int(1, 900)";
  EXPECT_THAT(Errors(spec), HasSubstr("num_leaves '1' is below the minimum, 2"));
  (*spec.mutable_search()->mutable_space())["model.lightgbm.num_leaves"] = "int(2, 900)";
  EXPECT_THAT(Errors(spec), HasSubstr("search.space has 2697 points, but a grid has at most 1000"));
  spec.mutable_search()->clear_space();
  EXPECT_THAT(Errors(spec), HasSubstr("search.space is missing: a grid needs lists of values"));
}

// Each kind of model has a space; all of it is right for the model, and it has many points.
TEST(SearchRulesTest, EveryKindOfModelHasAUsualSpace) {
  const auto& fields = *v1::ModelSpec::descriptor()->FindOneofByName("architecture");
  for (int i = 0; i < fields.field_count(); ++i) {
    const std::string& kind = fields.field(i)->name();
    if (kind == "automatic" || kind == "command") continue;  // a search varies neither
    v1::JobSpec spec = Searching();
    v1::ModelSpec& model = *spec.mutable_model();
    model.GetReflection()->MutableMessage(&model, fields.field(i));
    ResolveSearch(spec);
    double points = 1;
    for (const auto& [path, text] : spec.search().space()) {
      const auto range = ParseRange(text);
      ASSERT_TRUE(range.ok()) << path << ": " << range.status();
      EXPECT_EQ(Text(*range), text);
      points *= ValueCount(*range);
    }
    EXPECT_GT(points, 100) << fields.field(i)->name();
    for (const SpecError& error : CheckSpec(spec)) {
      EXPECT_THAT(error.field_path, testing::Not(testing::StartsWith("search")))
          << fields.field(i)->name() << ": " << error.message;
    }
  }
}

TEST(SearchRulesTest, TheUsualSpaceLeavesOutWhatTheSpecSets) {
  v1::JobSpec spec = Searching();
  spec.mutable_model()->mutable_lightgbm()->set_num_leaves(31);
  const v1::JobSpec resolved = ResolveSpec(spec);
  EXPECT_EQ(resolved.search().space().count("model.lightgbm.num_leaves"), 0u);
  EXPECT_EQ(resolved.search().space().at("model.lightgbm.min_data_in_leaf"), "log_int(1, 64)");
  EXPECT_EQ(resolved.search().trials(), 20);
  EXPECT_EQ(resolved.search().method(), "auto");
  EXPECT_EQ(resolved.predictions().ensemble(), "greedy");
}

TEST(SearchRulesTest, ASearchWithoutAModelTakesThatOfItsSpace) {
  EXPECT_TRUE(ResolveSpec(Searching()).model().has_lightgbm());
  EXPECT_TRUE(ResolveSpec(Searching("model.mlp.dropout", "uniform(0, 0.5)")).model().has_mlp());
  v1::JobSpec forecast = Searching();
  forecast.mutable_task()->set_type("forecasting");
  EXPECT_TRUE(ResolveSpec(forecast).model().has_lightgbm());
}

TEST(SearchRulesTest, ValuesAreSetAndReadBack) {
  v1::JobSpec spec = GoodSpec();
  for (const auto& [path, value] :
       {std::make_pair("model.mlp.hidden", "[64, 32]"), std::make_pair("model.mlp.dropout", "0.3"),
        std::make_pair("train.optimizer.kind", "sgd"), std::make_pair("train.epochs", "7"),
        std::make_pair("train.loss.label_smoothing", "0.1"),
        std::make_pair("train.shuffle", "false")}) {
    ASSERT_TRUE(SetSearched(path, value, spec).ok()) << path;
    EXPECT_EQ(SearchedValue(path, spec), value);
  }
  EXPECT_EQ(spec.model().mlp().hidden_size(), 2);
  ASSERT_TRUE(SetSearched("model.mlp.hidden", "8", spec).ok());
  EXPECT_EQ(SearchedValue("model.mlp.hidden", spec), "[8]");
  EXPECT_EQ(SearchedValue("train.learning_rate", spec), "0.01") << "of sgd";
  EXPECT_EQ(SearchedValue("train.batch", spec), "") << "chosen while the Job runs";
  EXPECT_FALSE(SetSearched("train.epochs", "many", spec).ok());
  EXPECT_FALSE(SetSearched("data.folds", "3", spec).ok());
}

TEST(SearchRulesTest, InYamlAListIsAChoice) {
  constexpr char kText[] = R"(
data: {train: /data/train.csv, target: y}
budget: {time: 60s}
search:
  trials: 5
  space:
    model.mlp.hidden: [[64], [64, 64]]
    train.optimizer.kind: [adamw, sgd]
    train.learning_rate: log(1e-4, 1e-1)
)";
  SpecReadOptions options;
  options.file = "job.yaml";
  const SpecReadResult read = ReadSpec(kText, options);
  ASSERT_TRUE(read.problems.empty()) << read.problems[0].message;
  EXPECT_EQ(read.spec.search().space().at("model.mlp.hidden"), "choice([64], [64, 64])");
  EXPECT_EQ(read.spec.search().space().at("train.optimizer.kind"), "choice(adamw, sgd)");
  const SpecReadResult wrong = ReadSpec(
      "data: {train: /a.csv, target: y}\nbudget: {time: 60s}\n"
      "search:\n  space:\n    train.epochs: int(9, 3)\n",
      options);
  ASSERT_EQ(wrong.problems.size(), 1u);
  EXPECT_EQ(wrong.problems[0].place, "job.yaml:5:5");
  const SpecReadResult empty = ReadSpec(
      "data: {train: /a.csv, target: y}\nbudget: {time: 60s}\nsearch: {space: {}}\n", options);
  ASSERT_EQ(empty.problems.size(), 1u);
  EXPECT_THAT(empty.problems[0].message, HasSubstr("search.space is empty"));
}

}  // namespace
}  // namespace traind
