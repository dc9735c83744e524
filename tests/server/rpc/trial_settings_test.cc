#include "server/rpc/trial_settings.h"

#include <gtest/gtest.h>

#include "common/spec/spec_rules.h"

namespace traind {
namespace {

Job JobOf(std::string spec_json) {
  Job job;
  job.spec_json = std::move(spec_json);
  return job;
}

v1::JobSpec Trials() {
  v1::JobSpec spec;
  spec.mutable_train()->set_epochs(20);
  spec.mutable_train()->set_learning_rate(0.001);
  v1::TrialSpec& trees = *spec.add_trials();
  trees.set_name("lightgbm");
  trees.mutable_model()->mutable_lightgbm()->set_num_leaves(63);
  trees.mutable_model()->mutable_lightgbm()->set_boosting("gbdt");  // the default
  v1::TrialSpec& network = *spec.add_trials();
  network.set_name("mlp-2");
  network.mutable_model()->mutable_mlp()->set_dropout(0.25);
  *network.mutable_train() = spec.train();
  network.mutable_train()->set_learning_rate(0.01);
  return spec;
}

TEST(TrialSettingsTest, WhatDiffersFromDefaultsIsTold) {
  const std::vector<v1::Trial> trials = TrialsOf(JobOf(SpecToJson(Trials())));
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0].index(), 0);
  EXPECT_EQ(trials[0].name(), "lightgbm");
  EXPECT_EQ(trials[0].kind(), "lightgbm");
  ASSERT_EQ(trials[0].settings().size(), 1u) << trials[0].DebugString();
  EXPECT_EQ(trials[0].settings().at("num_leaves"), "63");
  EXPECT_EQ(trials[1].index(), 1);
  EXPECT_EQ(trials[1].kind(), "mlp");
  EXPECT_EQ(trials[1].settings().at("dropout"), "0.25");
  EXPECT_EQ(trials[1].settings().at("train.learning_rate"), "0.01");
  EXPECT_EQ(trials[1].settings().size(), 2u) << trials[1].DebugString();
}

TEST(TrialSettingsTest, TrialsOfOneKindDoNotMixTheirSettings) {
  v1::JobSpec spec;
  for (const int leaves : {15, 31, 63}) {
    spec.add_trials()->mutable_model()->mutable_lightgbm()->set_num_leaves(leaves);
  }
  const std::vector<v1::Trial> trials = TrialsOf(JobOf(SpecToJson(spec)));
  ASSERT_EQ(trials.size(), 3u);
  EXPECT_EQ(trials[0].settings().at("num_leaves"), "15");
  EXPECT_TRUE(trials[1].settings().empty()) << "31 is the default: " << trials[1].DebugString();
  EXPECT_EQ(trials[2].settings().at("num_leaves"), "63");
}

TEST(TrialSettingsTest, WeightsToStartFromAreNamedAsInTheSpec) {
  v1::JobSpec spec;
  v1::ModelSpec& model = *spec.add_trials()->mutable_model();
  model.mutable_mlp();
  model.mutable_pretrained()->set_file("start.safetensors");
  const std::vector<v1::Trial> trials = TrialsOf(JobOf(SpecToJson(spec)));
  ASSERT_EQ(trials.size(), 1u);
  EXPECT_EQ(trials[0].kind(), "mlp");
  EXPECT_EQ(trials[0].settings().at("pretrained.file"), "start.safetensors");
}

TEST(TrialSettingsTest, ASpecWithoutTrialsHasNone) {
  EXPECT_TRUE(TrialsOf(JobOf(SpecToJson(v1::JobSpec()))).empty());
  EXPECT_TRUE(TrialsOf(JobOf("damaged")).empty());
  EXPECT_TRUE(TrialsOf(JobOf(R"({"trials":[{"name":3}]})")).empty());
  EXPECT_TRUE(TrialsOf(JobOf(R"({"trials":[4]})")).empty());
}

TEST(TrialSettingsTest, OfASearchTheFieldsThatVaryAreTold) {
  v1::JobSpec spec;
  spec.mutable_model()->mutable_lightgbm()->set_num_leaves(31);
  spec.mutable_train()->set_epochs(20);
  Job job = JobOf(SpecToJson(spec));
  job.spec.search.method = "random";
  job.spec.trials = {
      {"lightgbm", "lightgbm"}, {"lightgbm-1", "lightgbm"}, {"lightgbm-2", "lightgbm"}};
  job.spec.trials[0].settings = std::make_shared<const Settings>();
  job.spec.trials[1].settings = std::make_shared<const Settings>(
      Settings{{"model.lightgbm.num_leaves", "7"}, {"train.loss.kind", "mae"}});
  const std::vector<v1::Trial> trials = TrialsOf(job);
  ASSERT_EQ(trials.size(), 3u);
  EXPECT_EQ(trials[1].name(), "lightgbm-1");
  EXPECT_EQ(trials[1].settings().at("num_leaves"), "7");
  EXPECT_EQ(trials[1].settings().at("train.loss.kind"), "mae");
  EXPECT_TRUE(trials[2].settings().empty());
  // A Worker gets them in the trial's own place; the first trial is the spec itself.
  EXPECT_EQ(SpecForTrial(job, 0), job.spec_json);
  const auto told = SpecFromJson(SpecForTrial(job, 1));
  ASSERT_TRUE(told.ok()) << told.status();
  ASSERT_EQ(told->trials_size(), 2);
  EXPECT_EQ(told->trials(1).model().lightgbm().num_leaves(), 7);
  EXPECT_EQ(told->trials(1).train().loss().kind(), "mae");
  EXPECT_EQ(told->trials(1).train().epochs(), 20);
  EXPECT_EQ(told->model().lightgbm().num_leaves(), 31);
}

// A search with three trials on two folds; lower scores are better.
Job Shown() {
  Job job = JobOf("{}");
  job.state = JobState::kRunning;
  job.spec.folds = 2;
  job.spec.higher_is_better = false;
  job.spec.search = {kAskMethod, {{"train.ema", "uniform(0, 1)"}}, 1};
  job.plans.emplace_back().parallel_folds = 2;
  job.tasks.resize(1);
  job.tasks[0].kind = TaskKind::kPrepare;
  for (const char* ema : {"0.1", "0.2", ""}) {
    job.spec.trials.push_back({"mlp", "mlp"});
    if (*ema == 0) continue;
    job.spec.trials.back().settings =
        std::make_shared<const Settings>(Settings{{"train.ema", ema}});
  }
  const auto add = [&job](int trial, int fold, double score) {
    Task& task = job.tasks.emplace_back();
    task.trial = trial;
    task.fold = fold;
    task.state = TaskState::kDone;
    task.score = score;
    task.member.emplace();
  };
  add(0, 0, 0.5);
  add(0, 1, 0.7);
  add(1, 0, 0.4);
  return job;
}

TEST(TrialSettingsTest, GainsOfTrialsWithDifferentFoldsCompare) {
  const std::vector<v1::Trial> trials = TrialsOf(Shown());
  ASSERT_EQ(trials.size(), 3u);
  EXPECT_EQ(trials[0].state(), v1::TRIAL_STATE_DONE);
  EXPECT_NEAR(trials[0].score(), 0.6, 1e-9);
  EXPECT_EQ(trials[0].gain(), 0);
  EXPECT_EQ(trials[1].state(), v1::TRIAL_STATE_PARTIAL);
  EXPECT_EQ(trials[1].scored_folds(), 1);
  EXPECT_NEAR(trials[1].gain(), 0.1, 1e-9) << "lower is better";
  EXPECT_EQ(trials[2].state(), v1::TRIAL_STATE_OPEN);
  EXPECT_FALSE(trials[2].has_gain());
}

TEST(TrialSettingsTest, StatesFollowFromFolds) {
  Job job = Shown();
  job.tasks[3].state = TaskState::kRunning;
  EXPECT_EQ(TrialsOf(job)[1].state(), v1::TRIAL_STATE_RUNNING);
  EXPECT_FALSE(TrialsOf(job)[1].has_gain()) << "its score may still change";
  job.tasks[3].state = TaskState::kPending;
  EXPECT_EQ(TrialsOf(job)[1].state(), v1::TRIAL_STATE_WAITING);
  job.tasks[3].state = TaskState::kFailed;
  job.tasks[3].member.reset();
  job.tasks[3].attempts = 1;
  EXPECT_EQ(TrialsOf(job)[1].state(), v1::TRIAL_STATE_FAILED);
}

TEST(TrialSettingsTest, AJobThatAsksTellsHowManyTrialsItCouldUse) {
  Job job = Shown();
  EXPECT_EQ(SearchOf(job)->open_trials(), 1);
  EXPECT_EQ(SearchOf(job)->wanted_trials(), 1);
  job.plans.back().parallel_folds = 1;
  job.tasks[3].state = TaskState::kRunning;
  EXPECT_EQ(SearchOf(job)->open_trials(), 1);
  EXPECT_EQ(SearchOf(job)->wanted_trials(), 0) << "the slot trains trial 1";
  job.state = JobState::kFinalizing;
  EXPECT_EQ(SearchOf(job)->open_trials(), 0);
}

TEST(TrialSettingsTest, TheImportanceOfParametersFollowsFromTrainedFolds) {
  Job job = JobOf("{}");
  EXPECT_FALSE(SearchOf(job).has_value());
  job.spec.folds = 1;
  job.spec.search = {
      "tpe", {{"model.mlp.dropout", "uniform(0, 1)"}, {"train.ema", "uniform(0, 1)"}}, 1};
  job.tasks.resize(1);
  job.tasks[0].kind = TaskKind::kPrepare;
  for (int t = 0; t < 30; ++t) {
    const double ema = t * 7 % 30 / 30.0;
    job.spec.trials.push_back({"mlp", "mlp"});
    job.spec.trials.back().settings = std::make_shared<const Settings>(Settings{
        {"model.mlp.dropout", std::to_string(t / 30.0)}, {"train.ema", std::to_string(ema)}});
    Task& task = job.tasks.emplace_back();
    task.fold = 0;
    task.trial = t;
    task.state = TaskState::kDone;
    task.score = 0.5 + ema;
    task.member.emplace();
  }
  const auto search = SearchOf(job);
  ASSERT_TRUE(search.has_value());
  EXPECT_EQ(search->method(), "tpe");
  ASSERT_EQ(search->parameters_size(), 2);
  EXPECT_EQ(search->parameters(0).path(), "dropout");
  EXPECT_EQ(search->parameters(1).range(), "uniform(0, 1)");
  EXPECT_LT(search->parameters(0).importance(), 0.3);
  EXPECT_GT(search->parameters(1).importance(), 0.8);
  // Nothing is told before enough trials have ended.
  job.tasks.resize(5);
  EXPECT_FALSE(SearchOf(job)->parameters(0).has_importance());
}

}  // namespace
}  // namespace traind
