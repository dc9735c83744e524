#include "client/job_array.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace traind {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

TEST(JobArrayTest, EachCombinationIsAJob) {
  const auto jobs = ExpandArray({"train.learning_rate=0.1,0.01", "data.seed=1..3"});
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_THAT(*jobs, SizeIs(6));
  EXPECT_THAT((*jobs)[0], ElementsAre(Pair("train.learning_rate", "0.1"), Pair("data.seed", "1")));
  EXPECT_THAT((*jobs)[1], ElementsAre(Pair("train.learning_rate", "0.1"), Pair("data.seed", "2")));
  EXPECT_THAT((*jobs)[5], ElementsAre(Pair("train.learning_rate", "0.01"), Pair("data.seed", "3")));
}

TEST(JobArrayTest, CommasInBracketsBelongToAValue) {
  const auto jobs = ExpandArray({"model.mlp.hidden=[64, 32],[128],\"a,b\""});
  ASSERT_TRUE(jobs.ok());
  ASSERT_THAT(*jobs, SizeIs(3));
  EXPECT_EQ((*jobs)[0][0].second, "[64, 32]");
  EXPECT_EQ((*jobs)[2][0].second, "\"a,b\"");
}

TEST(JobArrayTest, WhatIsNoArrayIsSaid) {
  const auto error = [](const std::vector<std::string>& texts) {
    return std::string(ExpandArray(texts).status().message());
  };
  EXPECT_THAT(error({"data.seed"}), HasSubstr("has no values"));
  EXPECT_THAT(error({"data.seed=1,,2"}), HasSubstr("has an empty value"));
  EXPECT_THAT(error({"data.seed="}), HasSubstr("has an empty value"));
  EXPECT_THAT(error({"data.seed=5..1"}), HasSubstr("is no range"));
  EXPECT_THAT(error({"data.seed=1..101", "data.folds=1..100"}), HasSubstr("more than 10000 Jobs"));
}

}  // namespace
}  // namespace traind
