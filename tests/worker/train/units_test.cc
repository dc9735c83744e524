// The parts of training that need no LibTorch.
#include <absl/strings/match.h>
#include <gtest/gtest.h>

#include <string>

#include "worker/train/schedule.h"
#include "worker/train/step_timer.h"
#include "worker/train/task_control.h"
#include "worker/train/training_spec.h"

namespace traind {
namespace {

namespace rp = rank_protocol;

TEST(ScheduleTest, TheRateRisesToThePeakAndFallsToZero) {
  const Schedule schedule{0.01, 5, 25};
  EXPECT_DOUBLE_EQ(schedule.LearningRate(0), 0.002);
  EXPECT_DOUBLE_EQ(schedule.LearningRate(4), 0.01);
  EXPECT_DOUBLE_EQ(schedule.LearningRate(5), 0.01);
  EXPECT_NEAR(schedule.LearningRate(15), 0.005, 1e-12);
  EXPECT_GT(schedule.LearningRate(24), 0);
  EXPECT_EQ(schedule.LearningRate(25), 0);
  EXPECT_EQ(schedule.LearningRate(1000), 0);
}

TEST(ScheduleTest, ARunShorterThanItsWarmUpIsFine) {
  const Schedule schedule{0.01, 100, 3};
  EXPECT_DOUBLE_EQ(schedule.LearningRate(0), 0.0001);
  EXPECT_DOUBLE_EQ(schedule.LearningRate(2), 0.0003);
}

TEST(ScheduleTest, TheDefaultBatchGrowsWithTheRows) {
  EXPECT_EQ(DefaultGangBatch(1), 32);
  EXPECT_EQ(DefaultGangBatch(1150), 32);
  EXPECT_EQ(DefaultGangBatch(26'048), 512);
  EXPECT_EQ(DefaultGangBatch(100'000'000), 1024);
  EXPECT_EQ(WarmupSteps(37), 37);
  EXPECT_EQ(WarmupSteps(5000), 100);
}

TEST(StepTimerTest, QuantilesLeaveOutTheFirstStep) {
  StepTimer timer;
  timer.Add(absl::Seconds(9));
  for (int i = 1; i <= 9; ++i) timer.Add(absl::Milliseconds(i));
  EXPECT_EQ(timer.steps(), 10);
  EXPECT_EQ(timer.Quantile(0.5), absl::Milliseconds(5));
  EXPECT_EQ(timer.Quantile(0.9), absl::Milliseconds(8));
}

class TaskControlTest : public testing::Test {
 protected:
  SimulatedClock clock_{absl::UnixEpoch()};
};

TEST_F(TaskControlTest, DurationsCountFromWhenTheMessageWasRead) {
  clock_.Advance(absl::Seconds(100));
  rp::Train train;
  train.stop_ms = 5000;
  train.remaining_ms = -1;
  train.epochs = 7;
  const TaskControl control(train, clock_);
  clock_.Advance(absl::Seconds(3));
  EXPECT_EQ(control.orders().stop_at, absl::Seconds(105));
  EXPECT_EQ(control.orders().deadline, absl::InfiniteDuration());
  EXPECT_EQ(control.orders().epochs, 7);
  EXPECT_FALSE(control.orders().stop);
}

TEST_F(TaskControlTest, AReplanChangesOnlyWhatItNames) {
  rp::Train train;
  train.stop_ms = 5000;
  train.epochs = 7;
  TaskControl control(train, clock_);
  const int64_t version = control.version();
  control.Apply(rp::Replan{0, 3, -1});
  EXPECT_GT(control.version(), version);
  EXPECT_EQ(control.orders().epochs, 3);
  EXPECT_EQ(control.orders().stop_at, absl::Seconds(5));
  control.Apply(rp::Replan{0, 0, 1000});
  EXPECT_EQ(control.orders().epochs, 3);
  EXPECT_EQ(control.orders().stop_at, absl::Seconds(1));
}

TEST_F(TaskControlTest, AHardStopOverrulesASoftOneAndNotTheOtherWayRound) {
  TaskControl control(rp::Train{}, clock_);
  control.Apply(rp::Stop{0, true});
  EXPECT_TRUE(control.orders().predict);
  control.Apply(rp::Stop{0, false});
  EXPECT_FALSE(control.orders().predict);
  control.Apply(rp::Stop{0, true});
  EXPECT_FALSE(control.orders().predict);
}

TEST(TrainingSpecTest, WhatIsLeftOutHasItsDefault) {
  const auto spec = ParseTrainingSpec(R"({"task":{"type":"regression"}})");
  ASSERT_TRUE(spec.ok()) << spec.status().ToString();
  EXPECT_FALSE(spec->classification);
  EXPECT_EQ(spec->metric, Metric::kRmse);
  EXPECT_EQ(spec->model.hidden, (std::vector<int64_t>{256, 256}));
  EXPECT_EQ(spec->model.dropout, 0.1);
  EXPECT_EQ(spec->patience, 5);
  EXPECT_EQ(spec->learning_rate, 1e-3);
  EXPECT_EQ(spec->batch, 0);
  EXPECT_FALSE(spec->precision.has_value());
}

TEST(TrainingSpecTest, EveryFieldIsTaken) {
  const auto spec = ParseTrainingSpec(R"({
    "task": {"type": "classification", "metric": "auc"}, "data": {"seed": "18446744073709551615"},
    "model": {"mlp": {"hidden": [5], "dropout": 0}},
    "train": {"epochs": 9, "batch": 64, "precision": "bf16", "patience": 0,
              "learning_rate": 0.5, "weight_decay": 0, "checkpoint_every": "60s"}})");
  ASSERT_TRUE(spec.ok()) << spec.status().ToString();
  EXPECT_EQ(spec->metric, Metric::kAuc);
  EXPECT_EQ(spec->seed, 18446744073709551615u);
  EXPECT_EQ(spec->model.hidden, std::vector<int64_t>{5});
  EXPECT_EQ(spec->model.dropout, 0);
  EXPECT_EQ(spec->epochs, 9);
  EXPECT_EQ(spec->batch, 64);
  EXPECT_EQ(spec->precision, Precision::kBf16);
  EXPECT_EQ(spec->patience, 0);
  EXPECT_EQ(spec->learning_rate, 0.5);
  EXPECT_EQ(spec->weight_decay, 0);
}

TEST(TrainingSpecTest, ErrorsNameTheField) {
  const auto refusal = [](const std::string& json) {
    const auto spec = ParseTrainingSpec(json);
    EXPECT_TRUE(absl::IsInvalidArgument(spec.status())) << json;
    return std::string(spec.status().message());
  };
  EXPECT_TRUE(absl::StrContains(refusal("[]"), "no JSON object"));
  EXPECT_TRUE(absl::StrContains(refusal(R"({"task":{"type":"ranking"}})"), "task.type"));
  EXPECT_TRUE(absl::StrContains(refusal(R"({"task":{"metric":"rmse"}})"), "task.metric"));
  EXPECT_TRUE(
      absl::StrContains(refusal(R"({"model":{"mlp":{"hidden":[8,0]}}})"), "model.mlp.hidden[1]"));
  EXPECT_TRUE(absl::StrContains(refusal(R"({"model":{"cnn":{}}})"), "\"cnn\""));
  EXPECT_TRUE(absl::StrContains(refusal(R"({"train":{"precision":"int8"}})"), "train.precision"));
  EXPECT_TRUE(absl::StrContains(refusal(R"({"train":{"epochs":"x"}})"), "train.epochs"));
  EXPECT_TRUE(absl::StrContains(refusal(R"({"data":{"seed":-1}})"), "data.seed"));
}

}  // namespace
}  // namespace traind
