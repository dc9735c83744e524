#include "client/trials.h"

#include <absl/strings/match.h>
#include <absl/strings/str_split.h>
#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/wire/render_json.h"
#include "client/render_table.h"
#include "tests/client/sample_jobs.h"

namespace traind {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTried[] = R"pb(
  folds { index: 0 state: TASK_STATE_DONE score: 0.90 attempt: 2 }
  folds { index: 1 state: TASK_STATE_DONE score: 0.92 attempt: 3 }
  folds { index: 0 trial: 1 state: TASK_STATE_DONE score: 0.95 attempt: 4 }
  folds { index: 1 trial: 1 state: TASK_STATE_RUNNING attempt: 6 }
  folds { index: 0 trial: 2 state: TASK_STATE_PENDING }
  folds { index: 1 trial: 2 state: TASK_STATE_PENDING }
  scores { metric: "accuracy" oof: 0.96 comparable: true floor: 0.8 }
  predictions {
    number: 4
    folds: 0
    folds: 1
    members { fold: 0 trial: 0 kind: "lightgbm" attempt: 2 weight: 0.1 }
    members { fold: 0 trial: 1 kind: "mlp" attempt: 4 weight: 0.4 }
    members { fold: 1 trial: 0 kind: "lightgbm" attempt: 3 weight: 0.3 }
    members { fold: -1 kind: "logistic" weight: 0.2 }
  }
  attempts {
    id: 2
    task: "fold-0"
    started_at { seconds: 100 }
    ended_at { seconds: 101 nanos: 500000000 }
  }
  attempts {
    id: 4
    task: "fold-0-trial-1"
    started_at { seconds: 102 }
    ended_at { seconds: 104 }
  }
  attempts {
    id: 5
    task: "fold-1-trial-1"
    started_at { seconds: 104 }
    ended_at { seconds: 105 }
  }
  attempts {
    id: 6
    task: "fold-1-trial-1"
    started_at { seconds: 106 }
  }
  trials { index: 0 name: "lightgbm" kind: "lightgbm" }
  trials {
    index: 1
    name: "mlp"
    kind: "mlp"
    settings { key: "dropout" value: "0.25" }
    settings { key: "activation" value: "relu" }
  }
  trials { index: 2 name: "xgboost" kind: "xgboost" }
)pb";

v1::Job Tried() {
  v1::Job job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kTried, &job));
  job.set_id("a-1");
  return job;
}

TEST(TrialsTest, ATrialIsTheSumOfItsFolds) {
  const v1::Job job = Tried();
  const std::vector<TrialLine> lines = TrialsOf(job, 110);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].name, "floor");
  EXPECT_EQ(lines[0].kind, "logistic");
  EXPECT_EQ(lines[0].weight, 0.2);
  EXPECT_EQ(lines[1].name, "lightgbm");
  EXPECT_EQ(lines[1].done, 2);
  EXPECT_DOUBLE_EQ(*lines[1].score, 0.91);
  EXPECT_DOUBLE_EQ(lines[1].weight, 0.4);
  EXPECT_DOUBLE_EQ(lines[1].seconds, 1.5);
  EXPECT_EQ(lines[2].done, 1);
  EXPECT_EQ(lines[2].running, 1);
  EXPECT_DOUBLE_EQ(*lines[2].score, 0.95);
  EXPECT_DOUBLE_EQ(lines[2].seconds, 2 + 1 + 4) << "every Attempt counts, also the running one";
  EXPECT_EQ(lines[3].pending, 2);
  EXPECT_FALSE(lines[3].score.has_value());
}

TEST(TrialsTest, TheLeaderboardBeginsWithTheLargestWeight) {
  const std::string text = JobReport(Tried(), absl::FromUnixSeconds(110), {});
  for (const char* line : {"0      lightgbm  lightgbm  2 done             0.91   0.400   1.5\n",
                           "1      mlp       mlp       1 done, 1 running  0.95   0.400   7.0\n",
                           "-      floor     logistic  -                  0.8    0.200   -\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_LT(text.find("lightgbm  lightgbm"), text.find("floor     logistic"));
  EXPECT_THAT(text, Not(HasSubstr("xgboost"))) << "nothing of it has begun";
  // A Job with one setting has no leaderboard.
  EXPECT_THAT(JobReport(EndedJob(), absl::FromUnixSeconds(110), {}), Not(HasSubstr("WEIGHT")));
}

TEST(TrialsTest, TrialsThatHaveNotBegunAreCounted) {
  const std::string text = TrialTable(Tried(), 110);
  EXPECT_THAT(text, HasSubstr("mlp"));
  EXPECT_THAT(text, Not(HasSubstr("xgboost")));
  EXPECT_THAT(text, HasSubstr("\n1 further trial has not begun\n"));
}

TEST(TrialsTest, AFoldOfAnotherTrialIsListedWhereItFailed) {
  v1::Job job = Tried();
  EXPECT_THAT(JobReport(job, absl::Now(), {}), Not(HasSubstr("1 trial 1")));
  job.mutable_folds(3)->set_state(v1::TASK_STATE_FAILED);
  job.mutable_folds(3)->set_message("out of memory");
  EXPECT_THAT(JobReport(job, absl::Now(), {}), HasSubstr("1 trial 1  FAILED"));
}

TEST(TrialsTest, TheJsonHasEveryTrialWithItsSettings) {
  const auto json = nlohmann::json::parse(TrialJson(Tried(), 110));
  EXPECT_EQ(json["job"], "a-1");
  EXPECT_EQ(json["metric"], "accuracy");
  ASSERT_EQ(json["trials"].size(), 3u);
  const auto& mlp = json["trials"][1];
  EXPECT_EQ(mlp["trial"], 1);
  EXPECT_EQ(mlp["name"], "mlp");
  EXPECT_EQ(mlp["kind"], "mlp");
  EXPECT_EQ(mlp["folds"]["done"], 1);
  EXPECT_EQ(mlp["folds"]["running"], 1);
  EXPECT_EQ(mlp["weight"], 0.4);
  EXPECT_EQ(mlp["settings"], nlohmann::json::parse(R"({"activation": "relu", "dropout": 0.25})"));
  EXPECT_TRUE(json["trials"][2]["score"].is_null());
  EXPECT_EQ(nlohmann::json::parse(TrialJson(v1::Job(), 0))["trials"], nlohmann::json::array());
}

TEST(TrialsTest, TheParametersOfASearchAreTold) {
  v1::Job job = Tried();
  EXPECT_EQ(SearchTable(job), "");
  EXPECT_TRUE(nlohmann::json::parse(TrialJson(job, 110))["search"].is_null());
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(
        method: "tpe"
        parameters { path: "dropout" range: "uniform(0, 0.5)" importance: 0.125 }
        parameters { path: "train.ema" range: "choice(0, 0.9)" }
        parameters { path: "hidden" range: "choice([8], [64])" importance: 0.5 })pb",
      job.mutable_search()));
  EXPECT_EQ(SearchTable(job),
            "PARAMETER  RANGE              IMPORTANCE\n"
            "hidden     choice([8], [64])  0.50\n"
            "dropout    uniform(0, 0.5)    0.12\n"
            "train.ema  choice(0, 0.9)     -\n");
  const auto search = nlohmann::json::parse(TrialJson(job, 110))["search"];
  EXPECT_EQ(search["method"], "tpe");
  EXPECT_EQ(search["parameters"][0]["importance"], 0.125);
  EXPECT_TRUE(search["parameters"][1]["importance"].is_null());
}

TEST(TrialsTest, TheCsvHasALineForEachTrial) {
  v1::Job job = Tried();
  job.mutable_trials(0)->set_name("a,\"b\"");
  const std::vector<std::string> lines = absl::StrSplit(TrialCsv(job, 110), '\n');
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[1], "0,\"a,\"\"b\"\"\",lightgbm,2,0,0,0,0,0,0.91,0.4,1.5,");
  EXPECT_EQ(lines[2], "1,mlp,mlp,1,0,1,0,0,0,0.95,0.4,7,activation=relu dropout=0.25");
}

TEST(TrialsTest, MembersTellTheirKindAndTrialInJson) {
  const auto members = nlohmann::json::parse(ToJson(Tried()))["predictions"]["members"];
  EXPECT_EQ(members[1]["kind"], "mlp");
  EXPECT_EQ(members[1]["trial"], 1);
  EXPECT_EQ(members[3]["kind"], "logistic");
}

TEST(TrialsTest, AnAnswerTellsWhoJoinedAndWhatItGained) {
  const v1::Job before = Tried();
  v1::Job job = before;
  EXPECT_EQ(AnswerChange(before, job), "") << "the same answer";
  job.mutable_predictions()->set_number(5);
  EXPECT_EQ(AnswerChange(before, job), "") << "nothing has joined or gained";
  job.mutable_scores()->set_oof(0.97);
  EXPECT_EQ(AnswerChange(before, job),
            "the answer is better: accuracy 0.96 -> 0.97 out of fold, 2 trials with a weight");
  job.mutable_predictions()->add_members()->set_trial(2);
  EXPECT_EQ(AnswerChange(before, job),
            "xgboost in the answer: accuracy 0.96 -> 0.97 out of fold, 3 trials with a weight");
  job.mutable_scores()->set_comparable(false);
  EXPECT_EQ(AnswerChange(before, job),
            "xgboost in the answer: accuracy 0.97 out of fold, 3 trials with a weight");
  // The progress tells enough where there is one setting.
  v1::Job other = EndedJob();
  other.mutable_predictions()->set_number(9);
  EXPECT_EQ(AnswerChange(RunningJob(), other), "");
}

}  // namespace
}  // namespace traind
