#include "common/spec/pretrained_rules.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/spec/spec_rules.h"
#include "tests/common/spec/spec_fixture.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

v1::JobSpec Pretrained() {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_model()->mutable_pretrained()->set_file("/data/bert.safetensors");
  return spec;
}

TEST(PretrainedRulesTest, WeightsToStartFromLeaveTheModelAsItIs) {
  EXPECT_EQ(Errors(Pretrained()), "");
  v1::JobSpec spec = Pretrained();
  (*spec.mutable_model()->mutable_pretrained()->mutable_map())["layers.{i}.*"] = "l.{i}.*";
  EXPECT_EQ(Errors(spec), "");
  const v1::JobSpec resolved = ResolveSpec(spec);
  EXPECT_TRUE(resolved.model().has_mlp());
  EXPECT_EQ(resolved.model().pretrained().map().at("layers.{i}.*"), "l.{i}.*");
  // Specs without pretrained weights are unchanged.
  EXPECT_FALSE(ResolveSpec(GoodSpec()).model().has_pretrained());
  const auto again = SpecFromJson(SpecToJson(resolved));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(SpecToJson(*again), SpecToJson(resolved));
}

TEST(PretrainedRulesTest, MistakesAreNamed) {
  v1::JobSpec spec = Pretrained();
  v1::PretrainedSpec& pretrained = *spec.mutable_model()->mutable_pretrained();
  pretrained.set_file("");
  EXPECT_THAT(Errors(spec), HasSubstr("model.pretrained.file is missing; or give "));
  pretrained.set_file("w.safetensors");
  EXPECT_THAT(Errors(spec), HasSubstr("'w.safetensors' is not an absolute path"));
  pretrained.set_file("/w.safetensors");
  (*pretrained.mutable_map())["a.{i"] = "b";
  EXPECT_THAT(Errors(spec), HasSubstr("model.pretrained.map has a mistake at 'a.{i': braces"));
  pretrained.clear_map();
  (*pretrained.mutable_map())["a"] = "b\nc";
  EXPECT_THAT(Errors(spec), HasSubstr("control character"));
  (*pretrained.mutable_map())["a"] = "b";
  pretrained.set_map_file("/map.yaml");
  EXPECT_THAT(Errors(spec), HasSubstr("both set; choose one"));
  pretrained.clear_map_file();
  for (int i = 0; i < 10001; ++i) (*pretrained.mutable_map())[absl::StrCat("a", i)] = "b";
  EXPECT_THAT(Errors(spec), HasSubstr("10000 are the most"));
  spec = Pretrained();
  spec.mutable_model()->mutable_script()->set_file("/net.pt");
  EXPECT_THAT(Errors(spec), HasSubstr("brings its own weights"));
}

v1::JobSpec OfFolder() {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_data()->mutable_text()->add_columns("words");
  spec.mutable_model()->mutable_text()->set_architecture("bert");
  spec.mutable_model()->mutable_pretrained()->set_folder("/data/bert");
  return spec;
}

TEST(PretrainedRulesTest, AFolderTellsTheSizesTheNamesAndTheTokens) {
  EXPECT_EQ(Errors(OfFolder()), "");
  v1::JobSpec spec = OfFolder();
  // Assigning to spec makes other sections.
  const auto text = [&]() -> v1::TextEncoderSpec& { return *spec.mutable_model()->mutable_text(); };
  const auto pretrained = [&]() -> v1::PretrainedSpec& {
    return *spec.mutable_model()->mutable_pretrained();
  };
  text().set_dropout(0);
  EXPECT_EQ(Errors(spec), "");
  text().set_width(64);
  EXPECT_THAT(Errors(spec), HasSubstr("model.text.width is not for architecture: bert, whose "));
  spec = OfFolder();
  pretrained().set_file("/w.safetensors");
  EXPECT_THAT(Errors(spec), HasSubstr("model.pretrained.file are both set; choose one"));
  spec = OfFolder();
  (*pretrained().mutable_map())["a"] = "b";
  EXPECT_THAT(Errors(spec), HasSubstr("model.pretrained.map is of model.pretrained.file"));
  spec = OfFolder();
  spec.mutable_data()->mutable_text()->set_tokenizer("words");
  EXPECT_THAT(Errors(spec), HasSubstr("data.text.tokenizer is not for model.pretrained.folder"));
  spec.mutable_data()->mutable_text()->set_tokenizer("pretrained");
  EXPECT_EQ(Errors(spec), "");
  spec.mutable_data()->mutable_text()->set_model_file("/pieces.model");
  EXPECT_THAT(Errors(spec), HasSubstr("data.text.model_file is not for model.pretrained.folder"));
  spec = OfFolder();
  text().set_architecture("");
  EXPECT_THAT(Errors(spec), HasSubstr("needs a network with an architecture"));
  text().set_architecture("t5");
  EXPECT_THAT(Errors(spec), HasSubstr("'t5'"));
  spec = OfFolder();
  spec.mutable_model()->clear_pretrained();
  EXPECT_THAT(Errors(spec), HasSubstr("model.text.architecture needs model.pretrained.folder"));
  spec.mutable_model()->mutable_text()->clear_architecture();
  spec.mutable_data()->mutable_text()->set_tokenizer("pretrained");
  EXPECT_THAT(Errors(spec), HasSubstr("'pretrained' needs model.pretrained.folder"));
}

TEST(PretrainedRulesTest, ANamedResnetHasSizesOfItsOwn) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_data()->mutable_image();
  spec.mutable_model()->mutable_cnn()->set_architecture("resnet50");
  EXPECT_EQ(Errors(spec), "");
  v1::JobSpec resolved = ResolveSpec(spec);
  EXPECT_EQ(resolved.model().cnn().width(), 64);
  EXPECT_THAT(resolved.model().cnn().blocks(), ElementsAre(3, 4, 6, 3));
  // It may be submitted again.
  EXPECT_EQ(Errors(resolved), "");
  resolved.mutable_model()->mutable_cnn()->set_architecture("resnet18");
  EXPECT_THAT(Errors(resolved), HasSubstr("model.cnn.blocks is not for architecture: resnet18, "));
  v1::CnnSpec& cnn = *spec.mutable_model()->mutable_cnn();
  cnn.set_dropout(0.1);
  cnn.set_mirror(true);
  EXPECT_EQ(Errors(spec), "");
  spec.mutable_model()->mutable_pretrained()->set_file("/data/resnet50.safetensors");
  EXPECT_EQ(Errors(spec), "");
  spec.mutable_model()->mutable_pretrained()->clear_file();
  spec.mutable_model()->mutable_pretrained()->set_folder("/data/resnet50");
  EXPECT_EQ(Errors(spec), "");
  cnn.clear_architecture();
  EXPECT_THAT(Errors(spec), HasSubstr("bert or model.cnn.architecture: resnet18; its config.json"));
  cnn.set_architecture("resnet50");
  spec.mutable_model()->clear_pretrained();
  cnn.set_width(32);
  EXPECT_THAT(Errors(spec), HasSubstr("model.cnn.width is not for architecture: resnet50, which"));
  cnn.clear_width();
  cnn.set_architecture("resnet19");
  EXPECT_THAT(Errors(spec), HasSubstr("'resnet19' must be one of: resnet18, resnet34, resnet50"));
}

TEST(PretrainedRulesTest, FineTuningNeedsANetworkWhoseBodyIsKnown) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_train()->mutable_freeze()->set_epochs(2);
  spec.mutable_train()->set_layer_decay(0.8);
  EXPECT_THAT(Errors(spec), HasSubstr("train.layer_decay needs a network with an architecture"));
  spec.mutable_train()->mutable_freeze()->set_thaw_layers(1);
  EXPECT_THAT(Errors(spec), HasSubstr("train.freeze.epochs needs model.pretrained"));
  EXPECT_THAT(Errors(spec), HasSubstr("train.freeze.thaw_layers needs model.pretrained"));
  spec.mutable_data()->mutable_image();
  spec.mutable_model()->mutable_cnn()->set_architecture("convnext_atto");
  EXPECT_THAT(Errors(spec), Not(HasSubstr("train.layer_decay")));
  EXPECT_THAT(Errors(spec), HasSubstr("what starts at random cannot stay as it is"));
  spec.mutable_model()->mutable_pretrained()->set_folder("/data/convnext");
  spec.mutable_model()->mutable_cnn()->set_drop_path(0.1);
  EXPECT_EQ(Errors(spec), "");
  const v1::TrainSpec resolved = ResolveSpec(spec).train();
  EXPECT_EQ(resolved.layer_decay(), 0.8);
  EXPECT_FALSE(resolved.has_decay_norms());
  EXPECT_EQ(ResolveSpec(GoodSpec()).train().layer_decay(), 1);
  spec.mutable_model()->mutable_cnn()->set_architecture("resnet18");
  EXPECT_THAT(Errors(spec), HasSubstr("drop_path is not for architecture: resnet18"));
  spec.mutable_model()->mutable_cnn()->set_architecture("vit_tiny_patch16_224");
  spec.mutable_data()->mutable_image()->set_size(40);
  EXPECT_THAT(Errors(spec), HasSubstr("data.image.size is no multiple of 16, as vit_tiny_"));
  spec = GoodSpec();
  spec.mutable_data()->mutable_image();
  spec.mutable_model()->mutable_cnn()->set_drop_path(0.1);
  EXPECT_THAT(Errors(spec), HasSubstr("model.cnn.drop_path needs an architecture"));
}

TEST(PretrainedRulesTest, LowRankChangesNeedAPretrainedNetworkWithLinearLayers) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_model()->mutable_lora();
  EXPECT_THAT(Errors(spec), HasSubstr("model.lora needs model.pretrained for a network with an"));
  spec.mutable_data()->mutable_image();
  spec.mutable_model()->mutable_cnn()->set_architecture("convnext_atto");
  spec.mutable_model()->mutable_pretrained()->set_folder("/data/convnext");
  EXPECT_EQ(Errors(spec), "");
  EXPECT_EQ(ResolveSpec(spec).model().lora().rank(), 8);
  EXPECT_EQ(ResolveSpec(spec).model().lora().alpha(), 16);
  for (const char* const name : {"resnet18", "resnet50", "efficientnet_b0"}) {
    spec.mutable_model()->mutable_cnn()->set_architecture(name);
    EXPECT_THAT(Errors(spec),
                HasSubstr(absl::StrCat("model.lora is not for architecture: ", name)));
  }
}

TEST(PretrainedRulesTest, OneAverageOfTheWeightsPredicts) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_train()->set_swa(0.25);
  EXPECT_EQ(Errors(spec), "");
  spec.mutable_train()->set_ema(0.99);
  EXPECT_THAT(Errors(spec), HasSubstr("train.swa and train.ema are both set"));
}

TEST(PretrainedRulesTest, TheWarmUpOfAnAverageNeedsOne) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_train()->set_ema_warmup(true);
  EXPECT_THAT(Errors(spec), HasSubstr("train.ema_warmup needs train.ema, the decay that it leads"));
  spec.mutable_train()->set_ema(0.999);
  EXPECT_EQ(Errors(spec), "");
  spec.mutable_train()->clear_ema();
  (*spec.mutable_search()->mutable_space())["train.ema"] = "choice(0, 0.99)";
  EXPECT_THAT(Errors(spec), Not(HasSubstr("ema_warmup")));
}

TEST(PretrainedRulesTest, ViewsOfAnImageDiffer) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_data()->mutable_image();
  v1::CnnSpec& cnn = *spec.mutable_model()->mutable_cnn();
  cnn.set_view_shift(0.1);
  for (const double scale : {1.0, 1.25, 0.8}) cnn.add_view_scales(scale);
  EXPECT_EQ(Errors(spec), "");
  cnn.set_architecture("resnet18");
  EXPECT_EQ(Errors(spec), "");
  cnn.add_view_scales(1.25);
  EXPECT_THAT(Errors(spec), HasSubstr("model.cnn.view_scales[3] '1.25' is there twice"));
  cnn.set_view_scales(3, 5);
  EXPECT_THAT(Errors(spec), HasSubstr("model.cnn.view_scales[3] '5' is above the maximum, 4"));
  for (int i = 0; i < 5; ++i) cnn.add_view_scales(2 + 0.1 * i);
  EXPECT_THAT(Errors(spec), HasSubstr("has 9 sizes; 8 are the most"));
}

TEST(PretrainedRulesTest, AMapIsReadFromYaml) {
  const auto map = ReadNameMap("# of BERT\na.{i}.w: q.{i}, k.{i}\n'*': 'bert.*'\n");
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_THAT(*map, ElementsAre(Pair("*", "bert.*"), Pair("a.{i}.w", "q.{i}, k.{i}")));
  const auto error = [](absl::string_view text) {
    return std::string(ReadNameMap(text).status().message());
  };
  EXPECT_THAT(error("a: b\nc: [d]\n"), HasSubstr("line 2, column 1: expected PARAMETER: TENSOR"));
  EXPECT_THAT(error("- a\n"), HasSubstr("line 1, column 1: expected lines of the form"));
  EXPECT_THAT(error("a: b\na: c\n"), HasSubstr("twice"));
  EXPECT_THAT(error("a: {b\n"), HasSubstr("line"));
  EXPECT_THAT(error(""), HasSubstr("expected lines of the form"));
  EXPECT_THAT(error("a: \xff\n"), HasSubstr("line"));
}

}  // namespace
}  // namespace traind
