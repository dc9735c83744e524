#include "common/data/weights/image_config.h"

#include <gtest/gtest.h>

#include <string>

namespace traind {
namespace {

std::string Error(const std::string& json) {
  return std::string(ParseImageConfig("resnet18", json).status().message());
}

TEST(ImageConfigTest, WhatTimmWrites) {
  const auto config = ParseImageConfig("resnet18", R"({
    "architecture": "resnet18", "num_classes": 1000, "num_features": 512,
    "pretrained_cfg": {"tag": "a1_in1k", "input_size": [3, 176, 176], "crop_pct": 0.95,
                       "mean": [0.5, 0.25, 0.125], "std": [0.5, 0.25, 1], "first_conv": "conv1"}})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->size, 176);
  EXPECT_EQ(config->mean, (std::array<double, 3>{0.5, 0.25, 0.125}));
  EXPECT_EQ(config->deviation, (std::array<double, 3>{0.5, 0.25, 1}));
}

TEST(ImageConfigTest, OlderFilesHaveTheKeysAtTheTopAndSomeHaveNone) {
  const auto older =
      ParseImageConfig("resnet18", R"({"architecture": "resnet18", "input_size": [3, 96, 96]})");
  ASSERT_TRUE(older.ok()) << older.status();
  EXPECT_EQ(older->size, 96);
  EXPECT_EQ(older->mean, (std::array<double, 3>{0.485, 0.456, 0.406}));  // ImageNet's
  EXPECT_EQ(older->deviation, (std::array<double, 3>{0.229, 0.224, 0.225}));
}

TEST(ImageConfigTest, WhatDoesNotFitIsNamed) {
  EXPECT_EQ(Error("[]"), "expected a JSON object");
  EXPECT_EQ(Error(std::string(40, '[') + std::string(40, ']')), "expected a JSON object");
  EXPECT_EQ(Error(R"({"model_type": "resnet"})"),
            "architecture is missing; a folder of timm's save_for_hf has it, and the weights of "
            "torchvision are given as model.pretrained.file");
  EXPECT_EQ(Error(R"({"architecture": "resnet18d"})"),
            "architecture is \"resnet18d\", and model.cnn.architecture says resnet18");
  const auto with = [](const std::string& rest) {
    return R"({"architecture": "resnet18", "pretrained_cfg": {)" + rest + "}}";
  };
  EXPECT_EQ(Error(with(R"("input_size": [1, 28, 28])")),
            "input_size: expected [3, N, N] with N from 4 to 1024, not [1,28,28]");
  EXPECT_EQ(Error(with(R"("input_size": [3, 2048, 2048])")),
            "input_size: expected [3, N, N] with N from 4 to 1024, not [3,2048,2048]");
  EXPECT_EQ(Error(with(R"("mean": [0.5, "a", 0.5])")),
            "mean: expected three numbers from 0 to 1, not [0.5,\"a\",0.5]");
  EXPECT_EQ(Error(with(R"("std": [0.2, 0.2, 0])")),
            "std: expected three numbers from 0.001 to 1, not [0.2,0.2,0]");
}

}  // namespace
}  // namespace traind
