#include "server/rpc/proposals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/spec/spec_rules.h"

namespace traind {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// A search over trees; trial 0 has 31 leaves.
Job SearchOf(std::vector<std::pair<std::string, std::string>> more = {}) {
  v1::JobSpec spec;
  spec.mutable_data()->set_train("/data/train.csv");
  spec.mutable_data()->set_target("income");
  spec.mutable_task()->set_type("classification");
  spec.mutable_budget()->mutable_time()->set_seconds(60);
  spec.mutable_model()->mutable_lightgbm()->set_num_leaves(31);
  FillDefaults(spec);
  Job job;
  job.id = "job-1";
  job.spec_json = SpecToJson(spec);
  job.spec.search = {kAskMethod,
                     {{"model.lightgbm.boosting", "choice(gbdt, rf)"},
                      {"model.lightgbm.learning_rate", "log(0.01, 0.3)"},
                      {"model.lightgbm.num_leaves", "int(4, 128, 4)"}},
                     1};
  for (auto& parameter : more) job.spec.search.space.push_back(std::move(parameter));
  job.spec.trials.assign(2, {"lightgbm", "lightgbm", 10, 3});
  job.spec.trials[0].settings = std::make_shared<const Settings>(
      Settings{{"model.lightgbm.boosting", "gbdt"}, {"model.lightgbm.learning_rate", "0.1"}});
  return job;
}

std::string ErrorOf(const Job& job, const std::map<std::string, std::string>& asked) {
  const auto read = ReadProposal(job, asked);
  EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << read.status();
  return std::string(read.status().message());
}

TEST(ProposalsTest, NamesAreLongOrShortAndValuesAreWrittenAsTrialsHaveThem) {
  const auto read =
      ReadProposal(SearchOf(), {{"learning_rate", "5e-2"}, {"model.lightgbm.num_leaves", "64"}});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(*read, ElementsAre(Pair("model.lightgbm.boosting", "gbdt"),
                                 Pair("model.lightgbm.learning_rate", "0.05"),
                                 Pair("model.lightgbm.num_leaves", "64")));
}

TEST(ProposalsTest, WhatIsLeftOutIsAsInTheFirstTrialOrAsInTheSpec) {
  const auto read = ReadProposal(SearchOf(), {});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(*read, ElementsAre(Pair("model.lightgbm.boosting", "gbdt"),
                                 Pair("model.lightgbm.learning_rate", "0.1")));
}

TEST(ProposalsTest, EachWrongSettingIsNamed) {
  EXPECT_THAT(ErrorOf(SearchOf(), {{"learning_rat", "0.1"}, {"num_leaves", "7"}}),
              AllOf(HasSubstr("settings.learning_rat: is not in the space of job job-1; did you "
                              "mean 'learning_rate'?"),
                    HasSubstr("settings.num_leaves: '7' is not in int(4, 128, 4)")));
  EXPECT_THAT(ErrorOf(SearchOf(), {{"learning_rate", "0.5"}}),
              HasSubstr("settings.learning_rate: '0.5' is not in log(0.01, 0.3)"));
  EXPECT_THAT(ErrorOf(SearchOf(), {{"learning_rate", "nan"}}), HasSubstr("learning_rate"));
  EXPECT_THAT(ErrorOf(SearchOf(), {{"num_leaves", "8.5"}}), HasSubstr("num_leaves"));
  EXPECT_THAT(ErrorOf(SearchOf(), {{"boosting", "dart"}}), HasSubstr("boosting"));
}

TEST(ProposalsTest, SettingsThatContradictEachOtherAreRefused) {
  EXPECT_THAT(ErrorOf(SearchOf(), {{"boosting", "rf"}}), HasSubstr("bagging"));
}

TEST(ProposalsTest, AProgramHasSettingsOfItsOwn) {
  Job job = SearchOf();
  v1::JobSpec spec = *SpecFromJson(job.spec_json);
  v1::CommandSpec& command = *spec.mutable_model()->mutable_command();
  command.add_train("python3");
  (*command.mutable_settings())["lr"] = "0.1";
  job.spec_json = SpecToJson(spec);
  job.spec.search.space = {{"model.command.settings.lr", "log(0.001, 1)"}};
  job.spec.trials.assign(2, {"command", "command", 10, 3});
  job.spec.trials[0].settings = std::make_shared<const Settings>();
  EXPECT_THAT(ErrorOf(job, {{"lr", "2"}}), HasSubstr("settings.lr: '2' is not in"));
  EXPECT_THAT(ErrorOf(job, {{"lr", "0.1; rm"}}), HasSubstr("settings.lr"));
}

}  // namespace
}  // namespace traind
