// Folders with pretrained networks, as Submit sees them.
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "common/base/durable_file.h"
#include "common/spec/spec_rules.h"
#include "server/intake/intake.h"

namespace traind {
namespace {

using testing::HasSubstr;
using testing::Not;

const absl::Time kNow = absl::FromUnixSeconds(1'795'000'000);

constexpr char kBertConfig[] =
    R"({"model_type": "bert", "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4,
    "intermediate_size": 48, "vocab_size": 30, "max_position_embeddings": 16, "type_vocab_size": 2,
    "hidden_dropout_prob": 0.2, "id2label": {"0": "bad", "1": "good"}})";

class FolderIntakeTest : public testing::Test {
 protected:
  FolderIntakeTest() {
    std::string folder = absl::StrCat(testing::TempDir(), "/folder_intake.XXXXXX");
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = std::filesystem::canonical(folder);
    dir_ = folder_ + "/bert";
    intake_ = std::make_unique<Intake>(std::vector<std::string>{folder_});
    EXPECT_EQ(MakeDirs(dir_), absl::OkStatus());
    Write("bert/config.json", kBertConfig);
    Write("bert/model.safetensors", "weights");
    Write("bert/tokenizer.json", "{}");
    spec_.set_api("v1");
    spec_.set_name("texts");
    spec_.mutable_task()->set_type("classification");
    spec_.mutable_data()->set_train(Write("texts.csv", "id,words,kind\n1,a b,x\n2,c,y\n"));
    spec_.mutable_data()->set_target("kind");
    spec_.mutable_data()->set_id("id");
    spec_.mutable_data()->mutable_text()->add_columns("words");
    spec_.mutable_model()->mutable_text()->set_architecture("bert");
    spec_.mutable_model()->mutable_pretrained()->set_folder(dir_);
  }

  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = absl::StrCat(folder_, "/", name);
    EXPECT_EQ(WriteFileDurably(path, bytes), absl::OkStatus());
    return path;
  }
  std::string Errors(const v1::JobSpec& spec) {
    return std::string(intake_->Check(spec, kNow).status().message());
  }

  std::string folder_, dir_;
  std::unique_ptr<Intake> intake_;
  v1::JobSpec spec_;
};

TEST_F(FolderIntakeTest, TheSizesTheTokensAndTheRateComeFromTheFolder) {
  const auto checked = intake_->Check(spec_, kNow);
  ASSERT_TRUE(checked.ok()) << checked.status();
  const v1::ModelSpec& model = checked->resolved.model();
  EXPECT_EQ(model.pretrained().file(), dir_ + "/model.safetensors");
  EXPECT_EQ(model.pretrained().sha256(), Sha256Hex("weights"));
  EXPECT_THAT(model.pretrained().config(), Not(HasSubstr("good")));
  EXPECT_EQ(model.text().width(), 24);
  EXPECT_EQ(model.text().heads(), 4);
  EXPECT_EQ(model.text().layers(), 3);
  EXPECT_EQ(model.text().feedforward(), 48);
  EXPECT_EQ(model.text().dropout(), 0.2);
  const v1::TextSpec& text = checked->resolved.data().text();
  EXPECT_EQ(text.tokenizer(), "pretrained");
  EXPECT_EQ(text.model_file(), dir_ + "/tokenizer.json");
  EXPECT_EQ(text.max_tokens(), 16);
  EXPECT_EQ(checked->resolved.train().learning_rate(), 5e-5);
  EXPECT_FALSE(checked->resolved.train().decay_norms());
  EXPECT_TRUE(checked->resolved.train().has_decay_norms());
  // The resolved spec may be submitted again, and what the spec says counts.
  EXPECT_EQ(CheckSpec(checked->resolved).size(), 0);
  spec_.mutable_model()->mutable_text()->set_dropout(0);
  spec_.mutable_train()->set_learning_rate(1e-3);
  spec_.mutable_train()->set_decay_norms(true);
  spec_.mutable_data()->mutable_text()->set_max_tokens(8);
  const auto chosen = intake_->Check(spec_, kNow);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->resolved.model().text().dropout(), 0);
  EXPECT_EQ(chosen->resolved.train().learning_rate(), 1e-3);
  EXPECT_TRUE(chosen->resolved.train().decay_norms());
  EXPECT_EQ(chosen->resolved.data().text().max_tokens(), 8);
}

TEST_F(FolderIntakeTest, ADebertaIsADebertaV2ByItsConfigAndNeedsATokenizerJson) {
  Write("bert/config.json",
        R"({"model_type": "deberta-v2", "hidden_size": 24, "num_hidden_layers": 3,
      "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 30,
      "max_position_embeddings": 512, "type_vocab_size": 0, "relative_attention": true,
      "position_buckets": 256, "max_relative_positions": -1, "share_att_key": true,
      "pos_att_type": ["p2c", "c2p"], "norm_rel_ebd": "layer_norm",
      "position_biased_input": false})");
  spec_.mutable_model()->mutable_text()->set_architecture("deberta_v3");
  const auto checked = intake_->Check(spec_, kNow);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->resolved.model().text().attention(), "disentangled");
  EXPECT_EQ(checked->resolved.data().text().max_tokens(), 256);
  EXPECT_EQ(CheckSpec(checked->resolved).size(), 0);
  std::filesystem::remove(dir_ + "/tokenizer.json");
  Write("bert/vocab.txt", "[PAD]\n");
  EXPECT_THAT(Errors(spec_), HasSubstr("has no tokenizer.json; AutoTokenizer"));
}

TEST_F(FolderIntakeTest, AVocabularyWithoutATokenizerFileDoes) {
  std::filesystem::remove(dir_ + "/tokenizer.json");
  Write("bert/vocab.txt", "[PAD]\n");
  Write("bert/tokenizer_config.json", "{\n\"do_lower_case\": false, \"extra\": [1]}");
  const auto checked = intake_->Check(spec_, kNow);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->resolved.data().text().model_file(), dir_ + "/vocab.txt");
  EXPECT_EQ(checked->resolved.model().pretrained().tokenizer_config(), "{\"do_lower_case\":false}");
}

TEST_F(FolderIntakeTest, WhatAFolderLacksIsNamed) {
  spec_.mutable_data()->mutable_text()->set_max_tokens(17);
  EXPECT_THAT(Errors(spec_), HasSubstr("16 positions for the tokens of a text; data.text.max_"));
  spec_.mutable_data()->mutable_text()->set_max_tokens(16);
  spec_.mutable_model()->mutable_text()->set_architecture("distilbert");
  EXPECT_THAT(Errors(spec_), HasSubstr("config.json has model_type 'bert', but model.text.arch"));
  spec_.mutable_model()->mutable_text()->set_architecture("bert");
  std::filesystem::remove(dir_ + "/tokenizer.json");
  EXPECT_THAT(Errors(spec_), HasSubstr("has no tokenizer.json and no vocab.txt; AutoTokenizer"));
  Write("bert/pytorch_model.bin", "x");
  std::filesystem::remove(dir_ + "/model.safetensors");
  EXPECT_THAT(Errors(spec_), HasSubstr("has weights, but not as safetensors; load it"));
  Write("bert/config.json", "[]");
  EXPECT_THAT(Errors(spec_), HasSubstr("config.json is not a JSON object"));
  std::filesystem::remove(dir_ + "/config.json");
  EXPECT_THAT(Errors(spec_), HasSubstr("model.pretrained.folder: cannot read " + dir_ + "/config"));
}

}  // namespace
}  // namespace traind
