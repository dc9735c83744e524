#include "common/spec/presets.h"

#include <absl/strings/str_join.h>
#include <gtest/gtest.h>

#include "common/spec/spec_rules.h"

namespace traind {
namespace {

v1::JobSpec SpecWith(const std::string& preset) {
  v1::JobSpec spec;
  spec.set_api("v1");
  spec.set_preset(preset);
  spec.mutable_task()->set_type("classification");
  spec.mutable_data()->set_train("/data/train.csv");
  spec.mutable_data()->set_target("y");
  return spec;
}

TEST(PresetsTest, FastBalancedAndBestHave12And20And35Epochs) {
  EXPECT_EQ(ResolveSpec(SpecWith("fast")).train().epochs(), 12);
  EXPECT_EQ(ResolveSpec(SpecWith("balanced")).train().epochs(), 20);
  EXPECT_EQ(ResolveSpec(SpecWith("best")).train().epochs(), 35);
}

TEST(PresetsTest, AResolvedSpecNamesTheVersionAndIsResolvedOnce) {
  const v1::JobSpec resolved = ResolveSpec(SpecWith("best"));
  EXPECT_EQ(resolved.preset(), "best@2");
  EXPECT_EQ(SpecToJson(ResolveSpec(resolved)), SpecToJson(resolved));
}

TEST(PresetsTest, ANewVersionLeavesTheOneBeforeAsItIs) {
  v1::JobSpec spec = SpecWith("best");
  spec.mutable_model()->mutable_mlp();
  EXPECT_EQ(ResolveSpec(spec).train().seeds(), 3);
  spec.set_preset("best@1");
  EXPECT_EQ(ResolveSpec(spec).train().seeds(), 1);
  EXPECT_EQ(ResolveSpec(SpecWith("best@1")).preset(), "best@1");
  EXPECT_EQ(PinnedPreset("best@3"), "");
  EXPECT_EQ(PinnedPreset("fast"), "fast@1");
}

TEST(PresetsTest, ModelsWithOtherSettingsNeedNoOtherSeeds) {
  v1::JobSpec spec = SpecWith("best");
  spec.mutable_model()->mutable_automatic();
  const v1::JobSpec resolved = ResolveSpec(spec);
  EXPECT_EQ(resolved.data().folds(), 8);
  EXPECT_EQ(resolved.train().seeds(), 1);
  EXPECT_TRUE(CheckSpec(resolved).empty());
}

TEST(PresetsTest, OnlyUnsetFieldsAreFilled) {
  v1::JobSpec spec = SpecWith("fast");
  spec.mutable_train()->set_epochs(7);
  spec.mutable_model()->mutable_mlp()->add_hidden(8);
  const v1::JobSpec resolved = ResolveSpec(spec);
  EXPECT_EQ(resolved.train().epochs(), 7);
  ASSERT_EQ(resolved.model().mlp().hidden_size(), 1);
  EXPECT_EQ(resolved.model().mlp().hidden(0), 8);
  EXPECT_EQ(resolved.data().folds(), 3);
  EXPECT_EQ(resolved.train().patience(), 3);
}

TEST(PresetsTest, WhatWasFilledIsTold) {
  v1::JobSpec spec = SpecWith("balanced");
  spec.mutable_train()->set_patience(0);  // set, although it is 0
  EXPECT_EQ(absl::StrJoin(ApplyPreset(spec), "; "), "data.folds: 5; train.epochs: 20");
  EXPECT_EQ(spec.train().patience(), 0);
}

TEST(PresetsTest, AModelThatIsNotTheSpecsStaysAway) {
  v1::JobSpec spec = SpecWith("fast");
  spec.mutable_model()->mutable_lstm();
  const v1::JobSpec resolved = ResolveSpec(spec);
  EXPECT_EQ(resolved.model().lstm().hidden(), 64);
  EXPECT_FALSE(resolved.model().has_mlp());
}

TEST(PresetsTest, EveryFieldOfEveryPresetCanBeSetAndKeepsItsRules) {
  for (const char* preset : {"fast@1", "balanced@1", "best@1", "best@2"}) {
    EXPECT_EQ(PinnedPreset(preset), preset);
    ASSERT_FALSE(PresetFields(preset).empty());
    for (int model = 0; model < 3; ++model) {
      v1::JobSpec spec = SpecWith(preset);
      if (model == 1) spec.mutable_model()->mutable_lstm();
      if (model == 2) spec.mutable_model()->mutable_transformer();
      for (const std::string& line : ApplyPreset(spec)) {
        EXPECT_EQ(line.find(": ") == std::string::npos, false) << line;
      }
      EXPECT_TRUE(CheckSpec(spec).empty()) << preset;
    }
  }
}

TEST(PresetsTest, AnUnknownPresetIsRefused) {
  const auto errors = CheckSpec(SpecWith("quick"));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].field_path, "preset");
  EXPECT_NE(errors[0].message.find("fast, balanced, best"), std::string::npos) << errors[0].message;
  EXPECT_EQ(PinnedPreset("quick"), "");
}

TEST(PresetsTest, HeadsThatDoNotFitThePresetsWidthAreRefused) {
  v1::JobSpec spec = SpecWith("fast");
  spec.mutable_model()->mutable_transformer()->set_heads(64);
  ASSERT_EQ(CheckSpec(spec).size(), 1u);
  EXPECT_EQ(CheckSpec(spec)[0].field_path, "model.transformer.width");
}

}  // namespace
}  // namespace traind
