#include "server/store/spec_text.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "common/base/durable_file.h"

namespace traind {
namespace {

// A part of a resolved spec.
std::string SpecOf(const std::string& name) {
  return absl::StrCat(
      R"({"api":"v1","data":{"folds":5,"id":"","known_ahead":[],"seed":"0","target":"kind",)"
      R"("targets":[],"test":"","train":"/data/train.csv"},"from":"","labels":{},"model":{"mlp":)"
      R"({"dropout":0.1,"ensemble_members":1,"hidden":[256,256]}},"name":")",
      name, R"(","output":"","predictions":{"ensemble":"mean","format":"csv"}})");
}

std::string Unpacked(std::string text) {
  EXPECT_EQ(UnpackSpec(text), absl::OkStatus());
  return text;
}

TEST(SpecTextTest, ASpecTakesAFractionOfItsBytesAndComesBackAsItWas) {
  const std::string spec = SpecOf("digits");
  const std::string packed = PackSpec(spec);
  EXPECT_LT(packed.size(), spec.size() / 4);
  EXPECT_EQ(Unpacked(packed), spec);
}

TEST(SpecTextTest, EveryTextComesBackAsItWas) {
  std::mt19937 random(1);
  const std::string spec = SpecOf("digits");
  for (int i = 0; i < 2000; ++i) {
    std::string text = spec.substr(random() % spec.size(), random() % spec.size());
    for (size_t changes = random() % 20; changes > 0 && !text.empty(); --changes) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    ASSERT_EQ(Unpacked(PackSpec(text)), text);
  }
  for (const std::string& text : {std::string(), std::string("\1"), std::string(70'000, '\0'),
                                  std::string("{}"), spec + spec}) {
    EXPECT_EQ(Unpacked(PackSpec(text)), text);
  }
}

TEST(SpecTextTest, WhatAnEarlierVersionHasStoredIsTheTextItself) {
  EXPECT_EQ(Unpacked("{}"), "{}");
  EXPECT_EQ(Unpacked(SpecOf("old")), SpecOf("old"));
}

// The format of the database: these bytes mean these texts for ever.
TEST(SpecTextTest, WhatWasStoredStaysReadable) {
  EXPECT_EQ(Unpacked(std::string("\1\2ab\x02\x08\1c", 8)), "ablightgbmc");
  // The whole dictionary.
  const std::string whole = Unpacked(std::string("\1\0\0\x97\x15", 5));
  EXPECT_EQ(whole.size(), 2711u);
  EXPECT_EQ(Sha256Hex(whole), "ee2c58642724feace7632123fccb625d9e3c4d0679c8c2fef95deceeca2e3ed5");
}

TEST(SpecTextTest, DamagedBytesAreDataLossOrAnotherTextButNothingWorse) {
  std::mt19937 random(2);
  const std::string packed = PackSpec(SpecOf("digits"));
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = packed.substr(0, 1 + random() % packed.size());
    for (size_t at = 1; at < damaged.size(); at += 1 + random() % 40) {
      damaged[at] = static_cast<char>(random());
    }
    const absl::Status status = UnpackSpec(damaged);
    refused += absl::IsDataLoss(status);
    ASSERT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace traind
