#include "server/rpc/trial_settings.h"

#include <gtest/gtest.h>

#include "common/spec/spec_rules.h"

namespace traind {
namespace {

v1::JobSpec Spec() {
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
  const std::vector<v1::Trial> trials = TrialsOf(SpecToJson(Spec()));
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
  const std::vector<v1::Trial> trials = TrialsOf(SpecToJson(spec));
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
  const std::vector<v1::Trial> trials = TrialsOf(SpecToJson(spec));
  ASSERT_EQ(trials.size(), 1u);
  EXPECT_EQ(trials[0].kind(), "mlp");
  EXPECT_EQ(trials[0].settings().at("pretrained.file"), "start.safetensors");
}

TEST(TrialSettingsTest, ASpecWithoutTrialsHasNone) {
  EXPECT_TRUE(TrialsOf(SpecToJson(v1::JobSpec())).empty());
  EXPECT_TRUE(TrialsOf("damaged").empty());
  EXPECT_TRUE(TrialsOf(R"({"trials":[{"name":3}]})").empty());
  EXPECT_TRUE(TrialsOf(R"({"trials":[4]})").empty());
}

}  // namespace
}  // namespace traind
