#include "common/plain/plain_json.h"

#include <absl/time/time.h>
#include <gtest/gtest.h>

#include <cmath>

#include "proto/plain/job.h"

namespace traind::plain {
namespace {

template <class T>
std::string Refusal(const std::string& json) {
  return std::string(FromJson<T>(json).status().message());
}

TEST(PlainJsonTest, WhatTheTextLeavesOutHasItsDefault) {
  const auto spec = FromJson<MlpSpec>(R"({"dropout":0.25})");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->dropout, 0.25);
  EXPECT_EQ(spec->hidden, (std::vector<int64_t>{256, 256}));
  EXPECT_EQ(FromJson<MlpSpec>(R"({"hidden":[],"dropout":null})")->hidden.size(), 2u);
}

TEST(PlainJsonTest, ListsReplaceTheirDefault) {
  EXPECT_EQ(FromJson<MlpSpec>(R"({"hidden":[5]})")->hidden, std::vector<int64_t>{5});
}

TEST(PlainJsonTest, AMistakeIsNamedByItsPath) {
  EXPECT_EQ(Refusal<ModelSpec>(R"({"mlp":{"hidden":[8,0]}})"),
            "mlp.hidden[1]: 0 is not in 1..16384");
  EXPECT_EQ(Refusal<ModelSpec>(R"({"mlp":{"dropout":"much"}})"), "mlp.dropout: expected a number");
  EXPECT_EQ(Refusal<ModelSpec>(R"({"mlp":[]})"), "mlp: expected a JSON object");
  EXPECT_EQ(Refusal<TrainSpec>(R"({"epochs":2.5})"), "epochs: expected an integer");
  EXPECT_EQ(Refusal<TrainSpec>(R"({"shuffle":1})"), "shuffle: expected true or false");
  EXPECT_EQ(Refusal<TrainSpec>(R"({"precision":"fp8"})"),
            "precision: 'fp8' must be one of: fp32, tf32, bf16, fp16, auto");
  EXPECT_EQ(Refusal<TrainSpec>(R"({"checkpoint_every":60})"),
            "checkpoint_every: expected a duration such as 30s");
  EXPECT_EQ(Refusal<PretrainedSpec>(R"({"map":{"a":1}})"), "map.a: expected a text");
  EXPECT_EQ(Refusal<TrainSpec>("[]"), "TrainSpec: expected a JSON object");
  EXPECT_EQ(Refusal<TrainSpec>("{"), "TrainSpec: expected a JSON object");
}

TEST(PlainJsonTest, AnIntegerBeyondItsTypeIsRefused) {
  EXPECT_EQ(Refusal<ModelRef>(R"({"fold":2147483648})"),
            "fold: 2147483648 is not in -2147483648..2147483647");
  EXPECT_EQ(Refusal<AttemptSummary>(R"({"id":18446744073709551615})"), "id: expected an integer");
  EXPECT_EQ(FromJson<AttemptSummary>(R"({"id":"9007199254740993"})")->id, 9007199254740993);
}

TEST(PlainJsonTest, AutoAndZeroLeaveAnAutomaticFieldOpen) {
  EXPECT_EQ(FromJson<TrainSpec>(R"({"batch":0})")->batch, 0);
  EXPECT_EQ(FromJson<TrainSpec>(R"({"batch":"auto","precision":"auto"})")->precision, "");
  EXPECT_EQ(Refusal<TrainSpec>(R"({"batch":-1})"), "batch: -1 is not in 1..1048576");
}

TEST(PlainJsonTest, AFieldThatIsNotOpenTakesNoZero) {
  EXPECT_EQ(Refusal<TrainSpec>(R"({"epochs":0})"), "epochs: 0 is not in 1..100000");
}

TEST(PlainJsonTest, AMultipleIsCheckedAlsoAgainstADefault) {
  EXPECT_EQ(Refusal<ModelSpec>(R"({"transformer":{"width":30}})"),
            "transformer.width: 30 is no multiple of 4, the heads");
  EXPECT_EQ(Refusal<ModelSpec>(R"({"text":{"heads":3}})"),
            "text.width: 128 is no multiple of 3, the heads");
}

TEST(PlainJsonTest, OneMemberOfAOneofExcludesTheOthers) {
  EXPECT_EQ(Refusal<ModelSpec>(R"({"lstm":{},"mlp":{}})"), "mlp: excludes lstm, which is set, too");
}

TEST(PlainJsonTest, UnknownKeysAreToldAndIgnored) {
  std::vector<std::string> unknown;
  ASSERT_TRUE(FromJson<ModelSpec>(R"({"mlp":{"width":8},"gru":{}})", &unknown).ok());
  EXPECT_EQ(unknown, (std::vector<std::string>{"gru", "mlp.width"}));
}

TEST(PlainJsonTest, AMemberIsChosenByItsName) {
  ModelSpec model;
  EXPECT_EQ(ChosenField(ModelSpec::Info(), &model, "architecture"), nullptr);
  model.mlp.emplace();
  ASSERT_TRUE(ChooseField(ModelSpec::Info(), &model, "architecture", "lstm"));
  EXPECT_FALSE(model.mlp.has_value());
  EXPECT_STREQ(ChosenField(ModelSpec::Info(), &model, "architecture")->name, "lstm");
  EXPECT_FALSE(ChooseField(ModelSpec::Info(), &model, "architecture", "pretrained"));
  EXPECT_FALSE(ChooseField(ModelSpec::Info(), &model, "architecture", "gru"));
}

TEST(PlainJsonTest, RequiredFieldsAreMissed) {
  JobSpec spec;
  EXPECT_EQ(CheckRequired(spec, "").message(), "data.train: is missing");
  spec.predict.emplace().from = "another";
  EXPECT_EQ(CheckRequired(spec, "").message(), "predict.data: is missing");
  EXPECT_EQ(CheckRequired(spec.data, "data").message(), "data.train: is missing");
}

// Every kind of field there is.
TEST(PlainJsonTest, WhatIsWrittenIsReadAgain) {
  Job job;
  job.id = "a \"quoted\" id";
  job.state = JobState::kFinalizing;
  job.accepted_at = absl::FromUnixMillis(1'700'000'000'250);
  job.labels["team"] = "vision";
  job.train_rows = int64_t{1} << 60;
  job.remaining_s = 1e-7;
  job.plan.estimate = absl::Milliseconds(1500);
  job.predictions.folds = {0, 2};
  job.folds.emplace_back().score = std::nan("");
  job.folds.emplace_back().reused = true;
  const std::string json = ToJson(job);
  const auto read = FromJson<Job>(json);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToJson(*read), json);
  EXPECT_EQ(read->id, job.id);
  EXPECT_EQ(read->state, JobState::kFinalizing);
  EXPECT_EQ(read->accepted_at, job.accepted_at);
  EXPECT_EQ(read->labels, job.labels);
  EXPECT_EQ(read->train_rows, job.train_rows);
  EXPECT_EQ(read->remaining_s, job.remaining_s);
  EXPECT_EQ(read->plan.estimate, job.plan.estimate);
  EXPECT_EQ(read->predictions.folds, job.predictions.folds);
  ASSERT_EQ(read->folds.size(), 2u);
  EXPECT_TRUE(std::isnan(*read->folds[0].score));
  EXPECT_FALSE(read->folds[1].score.has_value());
  EXPECT_TRUE(read->folds[1].reused);
  EXPECT_EQ(Refusal<Job>(R"({"state":"DONE"})"),
            "state: expected a word such as JOB_STATE_UNSPECIFIED");
}

}  // namespace
}  // namespace traind::plain
