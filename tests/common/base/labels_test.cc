#include "common/base/labels.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace traind {
namespace {

using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(LabelsTest, NamesWithValues) {
  const auto labels = ParseLabels({"rack=a", "zone=", "k8s.io/x=y=z"});
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_THAT(*labels,
              UnorderedElementsAre(Pair("rack", "a"), Pair("zone", ""), Pair("k8s.io/x", "y=z")));
}

TEST(LabelsTest, WhatIsNoLabelIsSaid) {
  const auto error = [](const std::vector<std::string>& texts) {
    return std::string(ParseLabels(texts).status().message());
  };
  EXPECT_EQ(error({"rack"}), "'rack' is no label: NAME=VALUE");
  EXPECT_THAT(error({"-x=1"}), HasSubstr("'-x' is no label name"));
  EXPECT_THAT(error({"x=a\nb"}), HasSubstr("control character"));
  EXPECT_THAT(error({"x=\xff"}), HasSubstr("not UTF-8"));
  EXPECT_EQ(error({"x=1", "x=2"}), "the label x is there twice");
  EXPECT_THAT(error({"x=" + std::string(256, 'a')}), HasSubstr("more than 255 bytes"));
  std::vector<std::string> many;
  for (int i = 0; i <= kMostWorkerLabels; ++i) many.push_back("k" + std::to_string(i) + "=v");
  EXPECT_EQ(error(many), "there are 17 labels; 16 are the most");
}

}  // namespace
}  // namespace traind
