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

constexpr char kDeberta[] =
    R"({"model_type": "deberta-v2", "hidden_size": 24, "num_hidden_layers": 3,
    "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 30,
    "max_position_embeddings": 512, "type_vocab_size": 0, "layer_norm_eps": 1e-7,
    "relative_attention": true, "position_buckets": 256, "max_relative_positions": -1,
    "share_att_key": true, "pos_att_type": "p2c|c2p", "norm_rel_ebd": "layer_norm",
    "position_biased_input": false, "hidden_act": "gelu", "pooler_hidden_act": "gelu",
    "hidden_dropout_prob": 0.1, "cls_dropout": 0.2})";
constexpr char kModern[] =
    R"({"model_type": "modernbert", "hidden_size": 24, "num_hidden_layers": 4,
    "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 30,
    "max_position_embeddings": 8192, "norm_eps": 1e-4, "global_attn_every_n_layers": 3,
    "local_attention": 128, "local_rope_theta": 5000.0, "classifier_pooling": "mean",
    "hidden_activation": "gelu", "attention_bias": false})";

TEST(TextConfigTest, ADebertasDistancesAndAModernbertsWindowsAreRead) {
  const auto deberta = ParseTextConfig("deberta_v3", kDeberta);
  ASSERT_TRUE(deberta.ok()) << deberta.status();
  EXPECT_EQ(deberta->buckets, 256);
  EXPECT_EQ(deberta->farthest, 512);
  EXPECT_EQ(deberta->token_types, 0);
  EXPECT_EQ(deberta->head_dropout, 0.2);
  EXPECT_FALSE(deberta->has_positions());
  const auto modern = ParseTextConfig("modernbert", kModern);
  ASSERT_TRUE(modern.ok()) << modern.status();
  EXPECT_EQ(modern->global, (std::vector<bool>{true, false, false, true}));
  EXPECT_EQ(modern->window, 64);
  EXPECT_EQ(modern->global_base, 160000);
  EXPECT_EQ(modern->local_base, 5000);
  EXPECT_EQ(modern->epsilon, 1e-4);
  EXPECT_EQ(modern->dropout, 0);
  EXPECT_TRUE(modern->mean);
  // As later versions of the library write it.
  const auto later = ParseTextConfig(
      "modernbert",
      absl::StrReplaceAll(kModern, {{"\"global_attn_every_n_layers\": 3",
                                     R"("layer_types": ["full_attention", "sliding_attention",
      "full_attention", "sliding_attention"], "rope_parameters": {"full_attention":
      {"rope_theta": 7.0}, "sliding_attention": {"rope_theta": 9.0}})"}}));
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_EQ(later->global, (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(later->global_base, 7);
  EXPECT_EQ(later->local_base, 9);
}

TEST(TextConfigTest, OtherDebertasAndModernbertsAreRefused) {
  const auto deberta = [](absl::string_view from, absl::string_view to) {
    return std::string(ParseTextConfig("deberta_v3", absl::StrReplaceAll(kDeberta, {{from, to}}))
                           .status()
                           .message());
  };
  EXPECT_EQ(deberta("x", "x"), "");
  EXPECT_THAT(deberta("deberta-v2", "deberta"), HasSubstr("has model_type 'deberta', but"));
  EXPECT_THAT(deberta("\"share_att_key\": true", "\"share_att_key\": false"),
              HasSubstr("share_att_key: false is not supported; true is"));
  EXPECT_THAT(deberta("p2c|c2p", "c2p"), HasSubstr("pos_att_type: \"c2p\" has not both"));
  EXPECT_THAT(deberta("\"cls_dropout\"", "\"conv_kernel_size\": 3, \"cls_dropout\""),
              HasSubstr("conv_kernel_size: a convolution"));
  EXPECT_THAT(deberta("\"type_vocab_size\": 0", "\"type_vocab_size\": 2"),
              HasSubstr("type_vocab_size: 2 is not supported; 0 is"));
  EXPECT_THAT(deberta("\"layer_norm\"", "\"none\""), HasSubstr("norm_rel_ebd: only layer_norm"));
  EXPECT_THAT(deberta("\"cls_dropout\"", "\"embedding_size\": 12, \"cls_dropout\""),
              HasSubstr("embedding_size: is not supported"));
  EXPECT_THAT(deberta("\"pooler_hidden_act\": \"gelu\"", "\"pooler_hidden_act\": \"tanh\""),
              HasSubstr("pooler_hidden_act: 'tanh' is not supported"));
  const auto modern = [](absl::string_view from, absl::string_view to) {
    return std::string(ParseTextConfig("modernbert", absl::StrReplaceAll(kModern, {{from, to}}))
                           .status()
                           .message());
  };
  EXPECT_EQ(modern("x", "x"), "");
  EXPECT_THAT(modern("\"attention_bias\": false", "\"attention_bias\": true"),
              HasSubstr("attention_bias: true is not supported"));
  EXPECT_THAT(modern("\"mean\"", "\"max\""), HasSubstr("classifier_pooling: 'max'"));
  EXPECT_THAT(modern("\"hidden_size\": 24", "\"hidden_size\": 20"), HasSubstr("has an odd width"));
  EXPECT_THAT(modern("\"global_attn_every_n_layers\": 3", "\"layer_types\": [\"full_attention\"]"),
              HasSubstr("layer_types: has 1 kinds for 4 layers"));
  EXPECT_THAT(modern("5000.0", "0"), HasSubstr("rope_theta: is 0"));
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
