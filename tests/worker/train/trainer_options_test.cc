// The spec's options change a fold as they say, and none of them breaks a resume.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_replace.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/train/trainer_fixture.h"
#include "worker/device/guard.h"
#include "worker/task/failure.h"
#include "worker/train/fold_data.h"

namespace traind {
namespace {

class ResumeTest : public TrainerTest, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(
    Options, ResumeTest,
    testing::Values(
        R"("optimizer":{"kind":"adam"},"schedule":{"kind":"constant"})",
        R"("optimizer":{"kind":"sgd","nesterov":true},"schedule":{"kind":"step","period":1})",
        R"("optimizer":{"kind":"rmsprop","momentum":0.5},"schedule":{"kind":"polynomial"})",
        R"("optimizer":{"kind":"sgd","momentum":0},"schedule":{"kind":"one_cycle"})",
        R"("ema":0.9,"schedule":{"kind":"cosine_restarts","period":1,"period_growth":2})",
        R"("accumulation":3,"loss":{"label_smoothing":0.1,"class_weights":"balanced"})",
        R"("shuffle":false,"clip_norm":0,"paths":{"fused_optimizer":false})",
        R"("precision":"bf16","ema":0.5,"accumulation":2)", R"("swa":0.7,"patience":0)",
        R"("find_learning_rate":true)"));

TEST_P(ResumeTest, ARunResumedInMidEpochEndsAsIfNeverStopped) {
  rp::Train train = Task(1);
  train.batch = 8;
  train.spec_json = Spec(GetParam());
  RecordingSink whole, first, second;
  const absl::Status status = Run(train, whole);
  ASSERT_TRUE(status.ok()) << status.ToString();
  train.attempt = 2;
  ASSERT_TRUE(RunALittle(train, first).ok());
  train.attempt = 3;
  train.batch = 0;
  train.resume = first.All<rp::CheckpointSaved>().back().manifest;
  ASSERT_TRUE(Run(train, second).ok());
  EXPECT_TRUE(second.All<rp::LogText>().empty());
  EXPECT_TRUE(second.All<rp::Decision>().empty());  // a learning rate is not looked for again
  EXPECT_GT(second.All<rp::Started>()[0].first_step, 0);
  EXPECT_EQ(Tensors(whole), Tensors(second));
  EXPECT_EQ(Answers(whole.All<rp::FoldSaved>().back()),
            Answers(second.All<rp::FoldSaved>().back()));
}

TEST_F(TrainerTest, ACheckpointOfAnotherOptimizerIsPassedOverWithAWarning) {
  RecordingSink first, second;
  ASSERT_TRUE(RunALittle(Task(1), first).ok());
  rp::Train train = Task(2);
  train.spec_json = Spec(R"("optimizer":{"kind":"sgd"})");
  train.resume = first.All<rp::CheckpointSaved>().back().manifest;
  ASSERT_TRUE(Run(train, second).ok());
  EXPECT_EQ(second.All<rp::Started>()[0].first_step, 0);
  const auto logs = second.All<rp::LogText>();
  ASSERT_FALSE(logs.empty());
  EXPECT_TRUE(absl::StrContains(logs[0].text, "another optimizer: adamw, not sgd")) << logs[0].text;
}

// 400 training rows: 12 steps of 32 and one of 16, of which each part has 8.
TEST_F(TrainerTest, OnlyAPlainMlpsNumbersAreClippedSmoothly) {
  const auto with = [](absl::string_view setting) {
    return absl::StrReplaceAll(Spec(), {{R"("hidden":)", absl::StrCat(setting, R"("hidden":)")}});
  };
  const std::string lstm = R"({"task":{},"data":{"seed":"7"},"model":{"lstm":{}},"train":{}})";
  TableRows rows = MakeRows(options_);
  for (float& x : rows.train[0].numbers) x = std::exp(3 * x);  // a heavy tail
  const std::string table = WriteState(state_, rows, MakeFolds(options_));
  const std::pair<std::string, OutlierForm> cases[] = {
      {Spec(), OutlierForm::kSmooth},
      {with(R"("ensemble_members":4,)"), OutlierForm::kClamp},
      {with(R"("numeric_embedding":{},)"), OutlierForm::kClamp},
      {lstm, OutlierForm::kClamp}};
  for (const auto& [json, outliers] : cases) {
    const auto spec = ParseTrainingSpec(json);
    ASSERT_TRUE(spec.ok()) << spec.status();
    const auto fold = LoadFold(state_, table, "job", 1, *spec);
    ASSERT_TRUE(fold.ok()) << fold.status();
    EXPECT_EQ(fold->encoder->state().numeric[0].outliers, outliers) << json;
  }
}

TEST_F(TrainerTest, FourPassesAreOneBatchOfFourTimesTheRows) {
  RecordingSink whole, parts;
  rp::Train train = Task(1);
  train.batch = 32;
  train.spec_json = Spec(R"("patience":0)", 0);
  ASSERT_TRUE(Run(train, whole).ok());
  train.attempt = 2;
  train.batch = 8;
  train.spec_json = Spec(R"("patience":0,"accumulation":4)", 0);
  ASSERT_TRUE(Run(train, parts).ok());
  EXPECT_EQ(whole.All<rp::Started>()[0].steps_per_epoch, 13);
  EXPECT_EQ(parts.All<rp::Started>()[0].steps_per_epoch, 13);
  EXPECT_EQ(parts.All<rp::Started>()[0].batch, 8);
  const auto a = Tensors(whole), b = Tensors(parts);
  for (const auto& [name, values] : a) {
    if (!absl::StartsWith(name, "last.")) continue;
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i], b.at(name)[i], 2e-5f) << name << " " << i;
    }
  }
  EXPECT_NEAR(whole.All<rp::Epoch>()[2].train_loss, parts.All<rp::Epoch>()[2].train_loss, 1e-5);
}

// The rows of each pass, in the first epoch.
std::vector<int64_t> PassRows(const std::vector<StepInput>& passes, int64_t steps) {
  std::vector<int64_t> rows;
  for (const StepInput& pass : passes) {
    if (steps == 0) break;
    rows.push_back(pass.rows);
    steps -= pass.last;
  }
  return rows;
}

TEST_F(TrainerTest, TheScheduleStepsOncePerOptimizerStep) {
  rp::Train train = Task(1);
  train.epochs = 1;
  train.batch = 30;
  train.spec_json = Spec(
      R"("accumulation":4,"learning_rate":0.01,"schedule":{"kind":"polynomial","warmup_steps":0})");
  std::vector<StepInput> passes;
  TaskControl control(train, SystemClock());
  RecordingSink sink;
  ASSERT_TRUE(Run(train, control, sink, [&](const StepInput& input) {
                passes.push_back(input);
                return absl::OkStatus();
              }).ok());
  // 400 rows = 3 x 120 + 40; the spec plans 3 epochs, the Worker 1.
  EXPECT_EQ(PassRows(passes, 4),
            (std::vector<int64_t>{30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 10}));
  for (size_t i = 0; i < passes.size(); ++i) {
    EXPECT_DOUBLE_EQ(passes[i].learning_rate, 0.01 * (1 - static_cast<double>(i / 4) / 4)) << i;
    EXPECT_EQ(passes[i].gang_rows, i < 12 ? 120 : 40) << i;
    EXPECT_EQ(passes[i].last, i % 4 == 3 || i == 13) << i;
  }
}

TEST_F(TrainerTest, RunningOutOfMemoryHalvesTheBatchAndTrainsOnFromTheSameStep) {
  rp::Train train = Task(1);
  train.spec_json = Spec(R"("patience":0)", 0);
  RecordingSink plain, tight;
  ASSERT_TRUE(Run(train, plain).ok());
  train.attempt = 2;
  TaskControl control(train, SystemClock());
  int64_t seen = 0;
  const absl::Status status =
      Run(train, control, tight, [&](const StepInput& input) -> absl::Status {
        // From the 30th pass on there is room for five rows: in the second epoch.
        return ++seen > 30 && input.rows > 5 ? OutOfMemoryError("injected") : absl::OkStatus();
      });
  ASSERT_TRUE(status.ok()) << status.ToString();
  const auto decisions = tight.All<rp::Decision>();
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_EQ(decisions[0].rule, DecisionRule::kMemory);
  EXPECT_TRUE(absl::StrContains(decisions[0].cause, "out of memory at step 30"));
  EXPECT_EQ(decisions[0].from, "16 rows x 1 pass");
  EXPECT_EQ(decisions[0].to, "8 rows x 2 passes");
  EXPECT_EQ(decisions[1].to, "4 rows x 4 passes");
  EXPECT_EQ(tight.All<rp::Epoch>().back().step, plain.All<rp::Epoch>().back().step);
  const auto a = Tensors(plain), b = Tensors(tight);
  const std::string name = "last.layers.0.weight";
  for (size_t i = 0; i < a.at(name).size(); ++i) {
    ASSERT_NEAR(a.at(name)[i], b.at(name)[i], 2e-5f) << i;
  }
}

std::string TransformerSpec(const std::string& train) {
  return absl::StrCat(
      R"({"task":{"type":"classification","metric":"accuracy"},"data":{"seed":"7"},)",
      R"("model":{"transformer":{"width":16,"heads":2,"feedforward":16,)",
      R"("layers":2,"dropout":0.2}},"train":{"epochs":3,"patience":0,)", train, "}}");
}

TEST_F(TrainerTest, ATransformersActivationsGoWhenAHalfBatchDoesNotSuffice) {
  rp::Train train = Task(1);
  train.spec_json = TransformerSpec(R"("recompute":"auto")");
  TaskControl control(train, SystemClock());
  RecordingSink tight;
  int64_t seen = 0;
  const absl::Status status =
      Run(train, control, tight, [&](const StepInput& input) -> absl::Status {
        ++seen;
        return seen == 30 || (seen == 31 && input.rows == 8) ? OutOfMemoryError("injected")
                                                             : absl::OkStatus();
      });
  ASSERT_TRUE(status.ok()) << status.ToString();
  const auto decisions = tight.All<rp::Decision>();
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_EQ(decisions[0].to, "8 rows x 2 passes");
  EXPECT_EQ(decisions[1].to, "activations computed again");
  // From there on, and after a resume, it stays so.
  RecordingSink resumed;
  train.attempt = 2;
  train.batch = 0;
  train.resume = tight.All<rp::CheckpointSaved>().back().manifest;
  ASSERT_TRUE(Run(train, resumed).ok());
  EXPECT_TRUE(absl::StrContains(resumed.All<rp::Started>()[0].resolved_settings,
                                "batch=8 rows x 2 passes collective=none recompute=on"));
}

TEST_F(TrainerTest, RecomputingLeavesWhatIsLearntAsItIs) {
  rp::Train train = Task(1);
  RecordingSink kept, again;
  train.spec_json = TransformerSpec(R"("recompute":"off")");
  ASSERT_TRUE(Run(train, kept).ok());
  train.attempt = 2;
  train.spec_json = TransformerSpec(R"("recompute":"on")");
  ASSERT_TRUE(Run(train, again).ok());
  EXPECT_TRUE(absl::StrContains(again.All<rp::Started>()[0].resolved_settings, "recompute=on"));
  EXPECT_TRUE(again.All<rp::LogText>().empty());
  const auto a = Tensors(kept), b = Tensors(again);
  for (const auto& [name, values] : a) {
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i], b.at(name)[i], 1e-5f) << name << " " << i;
    }
  }
}

TEST_F(TrainerTest, RunningOutOfMemoryInTheProbeTakesTheLadderToo) {
  rp::Train train = Task(1);
  train.epochs = 20;  // enough steps for the probe to be few beside them
  train.threads = 2;
  train.spec_json = Spec(R"("patience":0)", 0);
  TaskControl control(train, SystemClock());
  RecordingSink tight;
  const absl::Status status =
      Run(train, control, tight, [&](const StepInput& input) -> absl::Status {
        return input.rows > 5 ? OutOfMemoryError("injected") : absl::OkStatus();
      });
  ASSERT_TRUE(status.ok()) << status.ToString();
  std::vector<std::string> to;
  for (const auto& decision : tight.All<rp::Decision>()) {
    if (decision.rule == DecisionRule::kMemory) to.push_back(decision.to);
  }
  EXPECT_EQ(to, (std::vector<std::string>{"8 rows x 2 passes", "4 rows x 4 passes"}));
  // Before the task said how it trains.
  EXPECT_TRUE(
      absl::StrContains(tight.All<rp::Started>()[0].resolved_settings, "batch=4 rows x 4 passes"));
}

TEST_F(TrainerTest, MemoryThatFailsInTheMiddleOfAStepLeavesNoTraceOfItsFirstPasses) {
  rp::Train train = Task(1);
  train.batch = 4;
  train.spec_json = Spec(R"("patience":0,"accumulation":4)", 0);
  RecordingSink plain, tight;
  ASSERT_TRUE(Run(train, plain).ok());
  train.attempt = 2;
  TaskControl control(train, SystemClock());
  int64_t seen = 0;
  ASSERT_TRUE(Run(train, control, tight, [&](const StepInput&) -> absl::Status {
                return ++seen == 43 ? OutOfMemoryError("injected") : absl::OkStatus();
              }).ok());
  ASSERT_EQ(tight.All<rp::Decision>().size(), 1u);
  EXPECT_EQ(tight.All<rp::Decision>()[0].to, "2 rows x 8 passes");
  const auto a = Tensors(plain), b = Tensors(tight);
  const std::string name = "last.layers.0.weight";
  for (size_t i = 0; i < a.at(name).size(); ++i) {
    ASSERT_NEAR(a.at(name)[i], b.at(name)[i], 2e-5f) << i;
  }
}

TEST_F(TrainerTest, WithoutRoomForOneRowTheFoldFailsWithThatReason) {
  rp::Train train = Task(1);
  TaskControl control(train, SystemClock());
  RecordingSink sink;
  const absl::Status status =
      Run(train, control, sink, [](const StepInput&) { return OutOfMemoryError("injected"); });
  EXPECT_EQ(FaultOf(status), Fault::kOutOfMemory);
  EXPECT_TRUE(absl::StrContains(status.message(), "one row at a time")) << status.ToString();
  EXPECT_EQ(sink.All<rp::Decision>().size(), 4u);  // 16 -> 8 -> 4 -> 2 -> 1
}

TEST_F(TrainerTest, CheckpointsByEpochKeepTheBestAndTheNewest) {
  rp::Train train = Task(1);
  train.epochs = 8;
  train.spec_json = Spec(R"("patience":0,"checkpoint_epochs":1,"keep_best":2,"learning_rate":0.1)");
  RecordingSink sink;
  ASSERT_TRUE(Run(train, sink).ok());
  std::set<int64_t> saved;
  for (const auto& message : sink.All<rp::CheckpointSaved>()) saved.insert(message.step);
  std::vector<std::pair<double, int64_t>> scores;
  for (const auto& epoch : sink.All<rp::Epoch>()) {
    EXPECT_EQ(saved.count(epoch.step), 1u) << epoch.step;
    scores.push_back({-epoch.val_metric, epoch.step});
  }
  std::stable_sort(scores.begin(), scores.end());
  std::set<int64_t> expected{scores[0].second, scores[1].second, 175, 200};
  for (const int64_t step : saved) {
    const std::string path =
        absl::StrCat(state_, "/", AttemptDir("job", 1), "/checkpoint-", step, ".json");
    EXPECT_EQ(access(path.c_str(), F_OK) == 0, expected.count(step) > 0) << step;
  }
}

TEST_F(TrainerTest, AnAverageOfTheWeightsPredictsWhereOneIsKept) {
  rp::Train train = Task(1);
  train.spec_json = Spec(R"("patience":0,"ema":0.95,"learning_rate":0.03)");
  RecordingSink sink;
  ASSERT_TRUE(Run(train, sink).ok());
  const auto tensors = Tensors(sink);
  EXPECT_NE(tensors.at("ema.layers.0.weight"), tensors.at("last.layers.0.weight"));
  if (sink.All<rp::Epoch>().back().val_metric == sink.All<rp::FoldSaved>().back().score) {
    EXPECT_EQ(tensors.at("layers.0.weight"), tensors.at("ema.layers.0.weight"));
  }
  EXPECT_GT(sink.All<rp::FoldSaved>().back().score, 0.5);
}

TEST_F(TrainerTest, TheMeanOfTheLastEpochsWeightsPredicts) {
  rp::Train train = Task(1);
  train.epochs = 4;
  train.spec_json =
      Spec(R"("epochs":4,"swa":0.5,"patience":0,"checkpoint_epochs":1,"keep_best":9)");
  RecordingSink sink;
  ASSERT_TRUE(Run(train, sink).ok());
  const auto at_epoch = [&](size_t epoch) {
    const int64_t step = sink.All<rp::Epoch>()[epoch].step;
    const std::string bytes =
        File(absl::StrCat(AttemptDir("job", 1), "/checkpoint-", step, ".safetensors"));
    const auto file = ParseSafetensors(bytes);
    EXPECT_TRUE(file.ok()) << file.status();
    return *FloatsOf(*file, "last.layers.0.bias", 16);
  };
  const std::vector<float> third = at_epoch(2), fourth = at_epoch(3);
  EXPECT_NE(third, fourth);
  const std::vector<float> mean = Tensors(sink).at("ema.layers.0.bias");
  for (size_t i = 0; i < mean.size(); ++i) {
    EXPECT_NEAR(mean[i], (third[i] + fourth[i]) / 2, 1e-6) << i;
  }
}

TEST_F(TrainerTest, ARangeTestChoosesTheLearningRateAndLeavesNoOtherTrace) {
  rp::Train train = Task(1);
  train.spec_json = Spec(R"("find_learning_rate":true,"schedule":{"kind":"constant"})");
  RecordingSink found, given;
  ASSERT_TRUE(Run(train, found).ok());
  const auto decisions = found.All<rp::Decision>();
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].rule, DecisionRule::kLearningRate);
  EXPECT_EQ(decisions[0].from, "0.001");
  EXPECT_TRUE(absl::StrContains(decisions[0].cause, "a range test of 100 steps"))
      << decisions[0].cause;
  std::string manifest = File(found.All<rp::CheckpointSaved>().back().manifest);
  const auto json = nlohmann::json::parse(manifest);
  const double rate = json.at("learning_rate").get<double>();
  EXPECT_GT(rate, 1e-4);
  EXPECT_LT(rate, 0.3);
  train.attempt = 2;
  train.spec_json =
      Spec(absl::StrFormat(R"("learning_rate":%.17g,"schedule":{"kind":"constant"})", rate));
  ASSERT_TRUE(Run(train, given).ok());
  EXPECT_EQ(Tensors(found), Tensors(given));
}

TEST_F(TrainerTest, ClassWeightsMustBeAsManyAsTheClasses) {
  rp::Train train = Task(1);
  train.spec_json = Spec(R"("loss":{"weights":[1,2]})");
  RecordingSink sink;
  const absl::Status status = Run(train, sink);
  EXPECT_EQ(FailureReason(status), AttemptEndReason::kUserError);
  EXPECT_TRUE(absl::StrContains(status.message(), "train.loss.weights: 2 weights for 3 classes"));
}

TEST_F(TrainerTest, ProgressTellsOfGradientsMemoryAndTheMachine) {
  rp::Train train = Task(1);
  train.epochs = 100'000;
  train.stop_ms = 1000;
  train.spec_json = Spec(R"("patience":0,"clip_norm":0,"gradient_norm":true)");
  RecordingSink sink;
  ASSERT_TRUE(Run(train, sink).ok());
  const auto progress = sink.All<rp::Progress>();
  ASSERT_GT(progress.size(), 2u);
  for (const auto& p : progress) {
    EXPECT_GT(p.gradient_norm, 0);
    EXPECT_GT(p.peak_memory_bytes, 10 << 20);
    EXPECT_EQ(p.peak_device_bytes, 0);
    EXPECT_GE(p.utilisation, 0);
    EXPECT_LE(p.utilisation, 1);
    EXPECT_LE(p.data_wait + p.exchange + p.pause, 1 + 1e-9);
    EXPECT_EQ(p.exchange, 0);
  }
  EXPECT_TRUE(absl::StrContains(sink.All<rp::Started>()[0].resolved_settings,
                                "precision=fp32 threads=1 batch=16 rows x 1 pass collective=none"));
}

// Which of the two it takes depends on the machine; what it says has to fit.
TEST_F(TrainerTest, ThreadsAreChosenByTimedStepsThatLeaveNoTrace) {
  RecordingSink one, two;
  rp::Train train = Task(1);
  train.epochs = 20;  // enough steps for the probe to be few beside them
  train.spec_json = Spec(R"("patience":0)", 0);
  ASSERT_TRUE(Run(train, one).ok());
  train.attempt = 2;
  train.threads = 2;
  ASSERT_TRUE(Run(train, two).ok());
  const auto decisions = two.All<rp::Decision>();
  const bool single = absl::StrContains(two.All<rp::Started>()[0].resolved_settings, "threads=1 ");
  ASSERT_EQ(decisions.size(), single ? 1u : 0u);
  if (single) {
    EXPECT_EQ(decisions[0].rule, DecisionRule::kThreads);
    EXPECT_EQ(decisions[0].from, "2");
    EXPECT_EQ(Tensors(one), Tensors(two));
  } else {
    EXPECT_TRUE(absl::StrContains(two.All<rp::Started>()[0].resolved_settings, "threads=2 "));
  }
}

}  // namespace
}  // namespace traind
