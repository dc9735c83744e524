// The parts of training that need no LibTorch.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "worker/task/task_control.h"
#include "worker/train/memory_ladder.h"
#include "worker/train/schedule.h"
#include "worker/train/signals.h"
#include "worker/train/step_timer.h"
#include "worker/train/thaw.h"
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

TEST(StepTimerTest, AsManyAreLeftOutAsAreSlower) {
  StepTimer timer;
  for (int i = 0; i < 4; ++i) timer.Add(absl::Seconds(9));
  EXPECT_EQ(timer.Quantile(0.5, 4), absl::Seconds(9));
  for (int i = 1; i <= 3; ++i) timer.Add(absl::Milliseconds(i));
  EXPECT_EQ(timer.Quantile(0.5, 4), absl::Milliseconds(2));
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
  EXPECT_EQ(control.orders().row_share, 1);
  control.Apply(rp::Replan{0, 0, 1000, -1, 0.4});
  EXPECT_EQ(control.orders().epochs, 3);
  EXPECT_EQ(control.orders().row_share, 0.4);
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
  EXPECT_EQ(spec->metric, *MetricByName("rmse"));
  EXPECT_EQ(spec->model.mlp->hidden, (std::vector<int64_t>{256, 256}));
  EXPECT_EQ(spec->model.mlp->dropout, 0.1);
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
  EXPECT_EQ(spec->metric, *MetricByName("auc"));
  EXPECT_EQ(spec->seed, 18446744073709551615u);
  EXPECT_EQ(spec->model.mlp->hidden, std::vector<int64_t>{5});
  EXPECT_EQ(spec->model.mlp->dropout, 0);
  EXPECT_EQ(spec->epochs, 9);
  EXPECT_EQ(spec->batch, 64);
  EXPECT_EQ(spec->precision, Precision::kBf16);
  EXPECT_EQ(spec->patience, 0);
  EXPECT_EQ(spec->learning_rate, 0.5);
  EXPECT_EQ(spec->optimizer.weight_decay, 0);
}

TEST(TrainingSpecTest, ErrorsNameTheField) {
  const auto refusal = [](const std::string& json) {
    const auto spec = ParseTrainingSpec(json);
    EXPECT_TRUE(absl::IsInvalidArgument(spec.status())) << json;
    return std::string(spec.status().message());
  };
  EXPECT_TRUE(absl::StrContains(refusal("[]"), "expected a JSON object"));
  EXPECT_TRUE(absl::StrContains(refusal(R"({"task":{"type":"ranking"}})"), "task.type"));
  EXPECT_TRUE(absl::StrContains(refusal(R"({"task":{"metric":"rmse"}})"), "task.metric"));
  EXPECT_TRUE(
      absl::StrContains(refusal(R"({"model":{"mlp":{"hidden":[8,0]}}})"), "model.mlp.hidden[1]"));
  EXPECT_TRUE(absl::StrContains(refusal(R"({"model":{"gru":{}}})"), "\"gru\""));
  EXPECT_TRUE(absl::StrContains(refusal(R"({"train":{"precision":"int8"}})"), "train.precision"));
  EXPECT_TRUE(absl::StrContains(refusal(R"({"train":{"epochs":"x"}})"), "train.epochs"));
  EXPECT_TRUE(absl::StrContains(refusal(R"({"data":{"seed":-1}})"), "data.seed"));
}

TEST(ThawTest, LayersThawAtOnceOrFromTheHeadDown) {
  const auto layers = [](int64_t frozen, int64_t thaw) {
    std::vector<int64_t> in_epochs;
    for (int64_t epoch = 0; epoch < 6; ++epoch) {
      in_epochs.push_back(LayersInEpoch(epoch, frozen, thaw, 9));
    }
    return in_epochs;
  };
  EXPECT_EQ(layers(0, 0), (std::vector<int64_t>{9, 9, 9, 9, 9, 9}));
  EXPECT_EQ(layers(2, 0), (std::vector<int64_t>{0, 0, 9, 9, 9, 9}));
  EXPECT_EQ(layers(1, 2), (std::vector<int64_t>{0, 2, 4, 6, 8, 9}));
  EXPECT_EQ(layers(0, 4), (std::vector<int64_t>{4, 8, 9, 9, 9, 9}));
  EXPECT_EQ(layers(1, 1000), (std::vector<int64_t>{0, 9, 9, 9, 9, 9}));
  EXPECT_EQ(layers(6, 3), (std::vector<int64_t>(6, 0)));
}

TEST(TrainingSpecTest, OptimizersAndLossesAreRead) {
  const auto parse = [](const std::string& train, const char* type = "regression") {
    const auto spec = ParseTrainingSpec(
        absl::StrCat(R"({"task":{"type":")", type, R"("},"train":{)", train, "}}"));
    EXPECT_TRUE(spec.ok()) << spec.status().ToString();
    return *spec;
  };
  TrainingSpec spec = parse("");
  EXPECT_EQ(spec.optimizer.kind, OptimizerKind::kAdamW);
  EXPECT_EQ(spec.optimizer.weight_decay, 0.01);
  EXPECT_EQ(spec.objective.loss, LossKind::kMse);
  EXPECT_EQ(spec.clip_norm, 5);
  EXPECT_EQ(spec.schedule.kind, "cosine");
  EXPECT_TRUE(spec.shuffle);
  spec = parse(
      R"("optimizer":{"kind":"sgd","nesterov":true},"clip_norm":0,"ema":0.99,"ema_warmup":true,"freeze":{"thaw_layers":3},)"
      R"("loss":{"kind":"huber","huber_delta":2},"scale_learning_rate":"linear")");
  EXPECT_EQ(spec.optimizer.kind, OptimizerKind::kSgd);
  EXPECT_EQ(spec.optimizer.momentum, 0.9);
  EXPECT_EQ(spec.optimizer.weight_decay, 0);
  EXPECT_EQ(spec.learning_rate, 0.01);
  EXPECT_EQ(spec.objective.loss, LossKind::kHuber);
  EXPECT_EQ(spec.objective.huber_delta, 2);
  EXPECT_EQ(spec.clip_norm, 0);
  EXPECT_EQ(spec.ema_decay, 0.99);
  EXPECT_TRUE(spec.ema_warmup);
  EXPECT_EQ(spec.thaw_layers, 3);
  EXPECT_EQ(spec.rate_scaling, RateScaling::kLinear);
  spec = parse(R"("loss":{"kind":"quantile","quantile":0.8})");
  EXPECT_EQ(spec.objective.loss, LossKind::kQuantile);
  EXPECT_EQ(spec.objective.quantile, 0.8);
  EXPECT_EQ(MetricName(spec.metric), "pinball_q0.8");
  spec = parse(R"("loss":{"kind":"tweedie","tweedie_power":1.2})");
  EXPECT_EQ(spec.objective.loss, LossKind::kTweedie);
  EXPECT_EQ(spec.objective.tweedie_power, 1.2);
  EXPECT_EQ(MetricName(spec.metric), "rmse");
  spec = parse(R"("loss":{"kind":"poisson"})");
  EXPECT_EQ(spec.objective.loss, LossKind::kPoisson);
  EXPECT_EQ(spec.objective.tweedie_power, 1.5);
  spec = parse(R"("optimizer":{"kind":"rmsprop","alpha":0.9,"momentum":0.5},"weight_decay":0.1,)"
               R"("learning_rate":0.2,"loss":{"label_smoothing":0.1,"weights":[1,2.5]})",
               "classification");
  EXPECT_EQ(spec.optimizer.kind, OptimizerKind::kRmsProp);
  EXPECT_EQ(spec.optimizer.alpha, 0.9);
  EXPECT_EQ(spec.optimizer.weight_decay, 0.1);
  EXPECT_EQ(spec.learning_rate, 0.2);
  EXPECT_EQ(spec.objective.label_smoothing, 0.1);
  EXPECT_EQ(spec.objective.class_weights, (std::vector<float>{1, 2.5f}));
}

TEST(TrainingSpecTest, SchedulesGangsAndMemoryAreRead) {
  const auto spec = ParseTrainingSpec(
      R"({"train":{"schedule":{"kind":"step","period":3,"gamma":0.5,"warmup_share":0.1},)"
      R"("accumulation":4,"shuffle":false,"checkpoint_epochs":2,"keep_best":3,)"
      R"("collective":"gloo","rendezvous":{"host":"10.0.0.1","port":4000,"timeout":"90s"},)"
      R"("recompute":"off","paths":{"fused_optimizer":false,"handwritten_backward":false,)"
      R"("cuda_graph":false,"cudnn_benchmark":false},"gradient_norm":true}})");
  ASSERT_TRUE(spec.ok()) << spec.status().ToString();
  EXPECT_EQ(spec->schedule.kind, "step");
  EXPECT_EQ(spec->schedule.period, 3);
  EXPECT_EQ(spec->schedule.gamma, 0.5);
  EXPECT_EQ(spec->schedule.warmup_share, 0.1);
  EXPECT_FALSE(spec->schedule.warmup_steps.has_value());
  EXPECT_EQ(spec->accumulation, 4);
  EXPECT_FALSE(spec->shuffle);
  EXPECT_EQ(spec->checkpoint_epochs, 2);
  EXPECT_EQ(spec->keep_best, 3);
  EXPECT_EQ(spec->transport, Transport::kGloo);
  EXPECT_EQ(spec->rendezvous.host, "10.0.0.1");
  EXPECT_EQ(spec->rendezvous.port, 4000);
  EXPECT_EQ(spec->rendezvous.timeout, absl::Seconds(90));
  EXPECT_EQ(spec->recompute, false);
  EXPECT_FALSE(spec->paths.fused_optimizer);
  EXPECT_FALSE(spec->paths.cuda_graph);
  EXPECT_FALSE(spec->paths.cudnn_benchmark);
  EXPECT_FALSE(spec->paths.handwritten_backward);
  EXPECT_TRUE(spec->paths.handwritten_forward);
  EXPECT_TRUE(spec->gradient_norm);
}

TEST(TrainingSpecTest, ContradictionsNameTheField) {
  const auto refusal = [](const std::string& train, const char* type = "classification") {
    const auto spec = ParseTrainingSpec(
        absl::StrCat(R"({"task":{"type":")", type, R"("},"train":{)", train, "}}"));
    EXPECT_TRUE(absl::IsInvalidArgument(spec.status())) << train;
    return std::string(spec.status().message());
  };
  for (const auto& [train, field] : std::vector<std::pair<std::string, std::string>>{
           {R"("optimizer":{"kind":"lion"})", "train.optimizer.kind"},
           {R"("optimizer":{"kind":"adam","nesterov":true})", "train.optimizer.nesterov"},
           {R"("loss":{"kind":"mse"})", "train.loss.kind"},
           {R"("loss":{"class_weights":"balanced","weights":[1,2]})", "train.loss.weights"},
           {R"("loss":{"weights":[1,-2]})", "train.loss.weights[1]"},
           {R"("loss":{"kind":"poisson"})", "train.loss.kind"},
           {R"("loss":{"quantile":1})", "train.loss.quantile"},
           {R"("loss":{"tweedie_power":2})", "train.loss.tweedie_power"},
           {R"("schedule":{"kind":"linear"})", "train.schedule.kind"},
           {R"("schedule":{"warmup_steps":1,"warmup_share":0.1})", "train.schedule"},
           {R"("collective":"mpi")", "train.collective"},
           {R"("rendezvous":{"timeout":"soon"})", "train.rendezvous.timeout"},
           {R"("recompute":"maybe")", "train.recompute"},
           {R"("shuffle":"no")", "train.shuffle"},
           {R"("accumulation":0)", "train.accumulation"},
           {R"("scale_learning_rate":"root")", "train.scale_learning_rate"}}) {
    EXPECT_TRUE(absl::StrContains(refusal(train), absl::StrCat("spec field ", field, ":")))
        << refusal(train);
  }
  EXPECT_TRUE(absl::StrContains(refusal(R"("loss":{"kind":"cross_entropy"})", "regression"),
                                "train.loss.kind"));
  EXPECT_TRUE(
      absl::StrContains(refusal(R"("loss":{"label_smoothing":0.1})", "regression"), "train.loss:"));
}

TEST(MemoryLadderTest, HalvesTheBatchThenComputesActivationsAgainThenHalvesOn) {
  MemoryLadder ladder;
  auto rung = ladder.Next(64, 128, {/*can_recompute=*/true, 0});
  ASSERT_TRUE(rung.has_value());
  EXPECT_EQ(rung->batch, 32);
  EXPECT_FALSE(rung->recompute);
  EXPECT_EQ(rung->from, "64 rows x 2 passes");
  EXPECT_EQ(rung->to, "32 rows x 4 passes");
  rung = ladder.Next(32, 128, {true, 0});
  ASSERT_TRUE(rung.has_value());
  EXPECT_TRUE(rung->recompute);
  EXPECT_EQ(rung->batch, 32);
  std::vector<int64_t> batches;
  for (int64_t batch = 32; (rung = ladder.Next(batch, 128, {})).has_value();) {
    batch = rung->batch;
    batches.push_back(batch);
  }
  EXPECT_EQ(batches, (std::vector<int64_t>{16, 8, 4, 2, 1}));
}

TEST(MemoryLadderTest, WithoutAnythingToGiveUpThereIsNoRung) {
  MemoryLadder ladder;
  EXPECT_FALSE(ladder.Next(1, 1, {}).has_value());
  EXPECT_TRUE(ladder.Next(1, 1, {/*can_recompute=*/true, 0})->recompute);
  EXPECT_FALSE(ladder.Next(1, 1, {}).has_value());
}

TEST(MemoryLadderTest, WindowsAreHalvedWhenAllElseIsGivenUpAndStayWindows) {
  MemoryLadder ladder;
  EXPECT_EQ(ladder.Next(2, 2, {/*can_recompute=*/true, 24})->window, 0);
  EXPECT_EQ(ladder.Next(1, 2, {true, 24})->window, 0);
  const auto rung = ladder.Next(1, 2, {false, 24});
  ASSERT_TRUE(rung.has_value());
  EXPECT_EQ(rung->from, "windows of 24 steps");
  EXPECT_EQ(rung->to, "windows of 12 steps");
  EXPECT_EQ(rung->batch, 1);
  EXPECT_EQ(ladder.Next(1, 2, {false, 5})->window, 3);
  EXPECT_FALSE(ladder.Next(1, 2, {false, 3}).has_value());
}

UsageWindow Window(double wall, double cpu, double gather, double exchange, int64_t micro_batches) {
  UsageWindow window;
  window.wall_s = wall;
  window.cpu_s = cpu;
  window.gather_s = gather;
  window.exchange_s = exchange;
  window.micro_batches = micro_batches;
  return window;
}

TEST(SignalsTest, UtilisationIsTheShareOfComputing) {
  EXPECT_DOUBLE_EQ(Utilisation(Window(10, 10, 0, 0, 1), 1, false), 1);
  EXPECT_DOUBLE_EQ(Utilisation(Window(10, 10, 3, 0, 1), 1, false), 0.7);
  EXPECT_DOUBLE_EQ(Utilisation(Window(10, 10, 0, 0, 1), 2, false), 0.5);
  UsageWindow paused = Window(10, 5, 0, 0, 1);
  paused.pause_s = 5;
  EXPECT_DOUBLE_EQ(Utilisation(paused, 1, false), 1);
  EXPECT_EQ(Utilisation(Window(10, 10, 0, 0, 1), 1, /*gpu=*/true), -1);
  EXPECT_EQ(Utilisation(Window(0, 0, 0, 0, 0), 1, false), -1);
}

TEST(SignalsTest, TheLoaderGetsTwiceTheThreadsWhileTrainingWaitsForIt) {
  LoaderWatch watch(/*most=*/6);
  const auto look = [&watch](double wait, int threads) {
    int to = threads;
    for (int i = 0; i < 16; ++i) {  // two seconds
      const auto change = watch.Add(Window(0.125, 0.125, 0.125 * wait, 0, 1), threads);
      if (!change) continue;
      to = change->threads;
      EXPECT_NEAR(change->wait, wait, 1e-6);
    }
    return to;
  };
  EXPECT_EQ(look(0.1, 1), 1);
  EXPECT_EQ(look(0.3, 1), 2);
  EXPECT_EQ(look(0.3, 2), 4);
  EXPECT_EQ(look(0.3, 4), 6);
  EXPECT_EQ(look(0.9, 6), 6);
  EXPECT_EQ(look(0.1, 2), 2) << "what was waited before the last change does not count";
  UsageWindow paused = Window(4, 4, 0.5, 0, 1);
  paused.pause_s = 2.5;
  EXPECT_FALSE(LoaderWatch(2).Add(paused, 1).has_value()) << "1.5 s of training are too few";
}

TEST(SignalsTest, SlowTrainingIsWarnedOfOnceAndWithItsCause) {
  const auto warnings = [](const UsageWindow& window, bool plain_rows = true) {
    UsageWatch watch(1, false, plain_rows, /*batch=*/32);
    std::vector<std::string> all;
    for (int i = 0; i < 300; ++i) {
      for (std::string& text : watch.Add(window)) all.push_back(std::move(text));
    }
    return all;
  };
  EXPECT_TRUE(warnings(Window(0.1, 0.1, 0, 0, 100)).empty());
  auto all = warnings(Window(0.1, 0.1, 0.03, 0, 100));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(absl::StrContains(all[0], "utilisation is 70 % (training waits)")) << all[0];
  EXPECT_TRUE(
      absl::StrContains(all[0], "putting batches together: a larger batch (train.batch: 64"));
  all = warnings(Window(0.1, 0.1, 0, 0.06, 100));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(absl::StrContains(all[0], "poor")) << all[0];
  EXPECT_TRUE(absl::StrContains(all[0], "ranks wait for each other"));
  all = warnings(Window(0.1, 0.05, 0, 0, 100));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(absl::StrContains(all[0], "a core for 50 %")) << all[0];
  all = warnings(Window(0.5, 0.5, 0, 0, 3));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(absl::StrContains(all[0], "360 batches a minute")) << all[0];
  EXPECT_TRUE(warnings(Window(0.5, 0.5, 0, 0, 3), /*plain_rows=*/false).empty());
}

}  // namespace
}  // namespace traind
