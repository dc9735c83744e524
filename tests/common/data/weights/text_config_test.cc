#include "common/data/weights/text_config.h"

#include <absl/strings/str_replace.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace traind {
namespace {

using ::testing::HasSubstr;

constexpr char kBert[] =
    R"({"model_type": "bert", "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4,
    "intermediate_size": 48, "vocab_size": 30, "max_position_embeddings": 16, "type_vocab_size": 2,
    "layer_norm_eps": 1e-7, "hidden_dropout_prob": 0.2, "hidden_act": "gelu"})";

std::string Error(absl::string_view from, absl::string_view to) {
  const std::string json = absl::StrReplaceAll(kBert, {{from, to}});
  return std::string(ParseTextConfig("bert", json).status().message());
}

TEST(TextConfigTest, SizesOfEachFamilyAreRead) {
  const auto bert = ParseTextConfig("bert", kBert);
  ASSERT_TRUE(bert.ok()) << bert.status();
  EXPECT_EQ(bert->width, 24);
  EXPECT_EQ(bert->epsilon, 1e-7);
  EXPECT_EQ(bert->head_dropout, 0.2);
  EXPECT_EQ(bert->max_tokens(), 16);
  const auto roberta = ParseTextConfig(
      "roberta", absl::StrReplaceAll(kBert, {{"\"bert\"", "\"roberta\", \"pad_token_id\": 1"}}));
  ASSERT_TRUE(roberta.ok()) << roberta.status();
  EXPECT_EQ(roberta->first_position, 2);
  EXPECT_EQ(roberta->max_tokens(), 14);
  const auto distilbert = ParseTextConfig(
      "distilbert",
      R"({"model_type": "distilbert", "dim": 8, "n_layers": 1, "n_heads": 2, "hidden_dim": 16,
      "vocab_size": 30, "max_position_embeddings": 16, "activation": "relu"})");
  ASSERT_TRUE(distilbert.ok()) << distilbert.status();
  EXPECT_EQ(distilbert->token_types, 0);
  EXPECT_EQ(distilbert->head_dropout, 0.2);
  EXPECT_EQ(distilbert->activation, TextConfig::Activation::kRelu);
}

TEST(TextConfigTest, WhatIsMissingOrNotSupportedIsNamed) {
  EXPECT_THAT(Error("\"bert\"", "\"gpt2\""), HasSubstr("has model_type 'gpt2', but model.text"));
  EXPECT_THAT(Error("model_type", "x"), HasSubstr("has no model_type"));
  EXPECT_THAT(Error("hidden_size", "x"), HasSubstr("hidden_size is missing"));
  EXPECT_THAT(Error("30", "\"30\""), HasSubstr("vocab_size: expected a whole number from 1 to"));
  EXPECT_THAT(Error("30", "99999999999999999999"), HasSubstr("vocab_size: expected a whole"));
  EXPECT_THAT(Error(": 4", ": 5"), HasSubstr("5 heads do not divide a width of 24"));
  EXPECT_THAT(Error(": 16", ": 3"), HasSubstr("leaves 3 positions"));
  EXPECT_THAT(Error("gelu", "silu"), HasSubstr("hidden_act: 'silu' is not supported"));
  EXPECT_THAT(Error("0.2", "1"), HasSubstr("hidden_dropout_prob: expected a number from 0 to"));
  EXPECT_THAT(Error("\"hidden_act\"", "\"is_decoder\": true, \"hidden_act\""),
              HasSubstr("a decoder is not supported"));
  EXPECT_THAT(Error("\"hidden_act\"", "\"position_embedding_type\": \"relative_key\", \"x\""),
              HasSubstr("position_embedding_type: 'relative_key' is not supported"));
  EXPECT_THAT(ParseTextConfig("bert", "[]").status().message(), HasSubstr("JSON object"));
  EXPECT_FALSE(ParseTextConfig("bert", std::string(200000, '[')).ok());
}

}  // namespace
}  // namespace traind
