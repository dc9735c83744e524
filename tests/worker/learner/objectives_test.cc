// Losses, optimizers, clipping, averages, accumulation and windows.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/worker/model/golden.h"
#include "tests/worker/model/model_of.h"
#include "worker/learner/learner.h"

namespace traind {
namespace {

// The same as in tests/golden/objectives_golden.py.
constexpr int64_t kSteps = 20, kBatch = 16, kNumeric = 8, kOutputs = 3;

LearnerOptions BaseOptions() {
  LearnerOptions options;
  MlpOf(options.model).hidden = {16};
  MlpOf(options.model).dropout = 0;
  options.shape.numeric = kNumeric;
  options.shape.outputs = kOutputs;
  options.objective.loss = LossKind::kMse;
  options.target_mean = {1, -20, 300};
  options.target_scale = {2, 5, 40};
  return options;
}

std::unique_ptr<Learner> NewLearner(const Golden& golden, const LearnerOptions& options) {
  LearnerData data;
  data.rows.rows = kSteps * kBatch;
  data.rows.numeric = golden.Floats("in.numeric");
  data.values = golden.Floats(IsOfLogarithm(options.objective.loss) ? "in.counts" : "in.values");
  data.classes = golden.Integers("in.classes");
  SetTorchThreads(1);  // at these sizes more threads would only wait for each other
  auto learner = Learner::Create(options, std::move(data));
  EXPECT_TRUE(learner.ok()) << learner.status().ToString();
  LoadWeights(golden, **learner);
  EXPECT_TRUE((*learner)->SetOrder(RowsFrom(0, kSteps * kBatch)).ok());
  return *std::move(learner);
}

void ExpectRun(const std::string& run, double rate,
               const std::function<void(LearnerOptions&)>& change) {
  const Golden golden("objectives.safetensors");
  const std::vector<float> losses = golden.Floats("out." + run + ".losses");
  const std::vector<float> predictions = golden.Floats("out." + run + ".predictions");
  for (const bool fused : {true, false}) {
    SCOPED_TRACE(run + (fused ? ", fused" : ", operators"));
    LearnerOptions options = BaseOptions();
    options.paths.fused_optimizer = fused;
    change(options);
    const auto learner = NewLearner(golden, options);
    for (int64_t step = 0; step < kSteps; ++step) {
      const absl::Status stepped = learner->Step({step * kBatch, kBatch, kBatch, rate, 1});
      ASSERT_TRUE(stepped.ok()) << stepped.ToString();
      const double wanted = losses[static_cast<size_t>(step)];
      EXPECT_NEAR(learner->ConsumeLoss()->mean(), wanted, 1e-5 * wanted) << "step " << step;
    }
    std::vector<float> out(predictions.size());
    ASSERT_TRUE(learner->Predict(Weights::kLast, RowsFrom(0, kBatch), absl::MakeSpan(out)).ok());
    for (size_t i = 0; i < out.size(); ++i) {
      EXPECT_NEAR(out[i], predictions[i], 2e-5 * (1 + std::fabs(predictions[i]))) << i;
    }
  }
}

TEST(ObjectivesTest, MseOfSeveralTargetsUnderAdamWIsPyTorchs) {
  ExpectRun("mse_adamw", 3e-3, [](LearnerOptions& options) {
    options.optimizer.beta1 = 0.8;
    options.optimizer.beta2 = 0.95;
    options.optimizer.eps = 1e-6;
    options.optimizer.weight_decay = 0.1;
  });
}

TEST(ObjectivesTest, MaeUnderAdamWithClippingIsPyTorchs) {
  ExpectRun("mae_adam", 3e-3, [](LearnerOptions& options) {
    options.objective.loss = LossKind::kMae;
    options.optimizer.kind = OptimizerKind::kAdam;
    options.optimizer.weight_decay = 0.1;
    options.clip_norm = 0.2;
  });
}

TEST(ObjectivesTest, HuberUnderNesterovsMomentumIsPyTorchs) {
  ExpectRun("huber_nesterov", 0.02, [](LearnerOptions& options) {
    options.objective.loss = LossKind::kHuber;
    options.objective.huber_delta = 0.5;
    options.optimizer.kind = OptimizerKind::kSgd;
    options.optimizer.momentum = 0.9;
    options.optimizer.nesterov = true;
    options.clip_norm = 0;
  });
}

TEST(ObjectivesTest, SmapeInTheTargetsUnitUnderMomentumIsPyTorchs) {
  ExpectRun("smape_momentum", 0.02, [](LearnerOptions& options) {
    options.objective.loss = LossKind::kSmape;
    options.optimizer.kind = OptimizerKind::kSgd;
    options.optimizer.momentum = 0.9;
    options.clip_norm = 0;
  });
}

TEST(ObjectivesTest, TheQuantileLossIsPyTorchs) {
  for (const bool handwritten : {true, false}) {
    ExpectRun("quantile", 3e-3, [=](LearnerOptions& options) {
      options.objective.loss = LossKind::kQuantile;
      options.objective.quantile = 0.8;
      options.paths.handwritten_backward = handwritten;
    });
  }
}

void TakeLogarithms(LearnerOptions& options) {
  options.target_mean = {2, 0.5, 30};  // the answers' unit
  options.target_scale = {7, 7, 7};    // which has no part in it
}

TEST(ObjectivesTest, TheLossOfCountsIsPyTorchs) {
  for (const bool handwritten : {true, false}) {
    ExpectRun("poisson", 3e-3, [=](LearnerOptions& options) {
      TakeLogarithms(options);
      options.objective.loss = LossKind::kPoisson;
      options.paths.handwritten_backward = handwritten;
    });
  }
}

TEST(ObjectivesTest, TheLossOfAmountsIsThatOfItsFormula) {
  for (const bool handwritten : {true, false}) {
    ExpectRun("tweedie", 0.02, [=](LearnerOptions& options) {
      TakeLogarithms(options);
      options.objective.loss = LossKind::kTweedie;
      options.objective.tweedie_power = 1.3;
      options.optimizer.kind = OptimizerKind::kSgd;
      options.optimizer.weight_decay = 0;
      options.clip_norm = 0;
      options.paths.handwritten_backward = handwritten;
    });
  }
}

TEST(ObjectivesTest, PlainGradientDescentIsPyTorchs) {
  ExpectRun("mse_sgd", 0.05, [](LearnerOptions& options) {
    options.optimizer.kind = OptimizerKind::kSgd;
    options.optimizer.weight_decay = 0;
    options.clip_norm = 0;
  });
}

TEST(ObjectivesTest, RmsPropIsPyTorchs) {
  ExpectRun("mse_rmsprop", 1e-3, [](LearnerOptions& options) {
    options.optimizer.kind = OptimizerKind::kRmsProp;
    options.optimizer.alpha = 0.95;
    options.optimizer.eps = 1e-7;
    options.optimizer.weight_decay = 0.02;
    options.clip_norm = 0;
  });
}

TEST(ObjectivesTest, RmsPropWithMomentumIsPyTorchs) {
  ExpectRun("huber_rmsprop_momentum", 1e-3, [](LearnerOptions& options) {
    options.objective.loss = LossKind::kHuber;
    options.optimizer.kind = OptimizerKind::kRmsProp;
    options.optimizer.momentum = 0.9;
    options.optimizer.weight_decay = 0;
    options.clip_norm = 0;
  });
}

void WeighClasses(LearnerOptions& options) {
  options.objective.loss = LossKind::kCrossEntropy;
  options.objective.label_smoothing = 0.1;
  options.objective.class_weights = {0.5f, 1.0f, 2.0f};
  options.target_mean.clear();
  options.target_scale.clear();
}

TEST(ObjectivesTest, CrossEntropyWithSmoothingAndClassWeightsIsPyTorchs) {
  ExpectRun("weighted_cross_entropy", 3e-3, WeighClasses);
}

// Plain descent shows the gradient's length, which is divided by the weights of the batch's rows.
TEST(ObjectivesTest, WeightedStepsAreAsLongAsPyTorchs) {
  for (const bool handwritten : {true, false}) {
    ExpectRun("weighted_cross_entropy_sgd", 0.5, [=](LearnerOptions& options) {
      WeighClasses(options);
      options.optimizer.kind = OptimizerKind::kSgd;
      options.optimizer.weight_decay = 0;
      options.clip_norm = 0;
      options.paths.handwritten_backward = handwritten;
    });
  }
}

TEST(ObjectivesTest, AnAverageOfTheWeightsPredictsAsPyTorchs) {
  ExpectRun("mse_ema", 3e-3, [](LearnerOptions& options) { options.ema_decay = 0.8; });
}

// After each step: the decay rises until it is 0.6. A state that is taken up goes on in its middle.
TEST(ObjectivesTest, TheDecayOfAnAverageRisesAsInPyTorch) {
  const Golden golden("objectives.safetensors");
  const std::vector<float> answers = golden.Floats("out.mse_ema_warmup.answers");
  LearnerOptions options = BaseOptions();
  options.ema_decay = 0.6;
  options.ema_warmup = true;
  for (const bool handwritten : {true, false}) {
    options.paths.handwritten_backward = handwritten;
    auto learner = NewLearner(golden, options);
    for (int64_t step = 0; step < kSteps; ++step) {
      ASSERT_TRUE(learner->Step({step * kBatch, kBatch, kBatch, 3e-3, 1}).ok());
      std::vector<float> out(kBatch * kOutputs);
      ASSERT_TRUE(learner->Predict(Weights::kLast, RowsFrom(0, kBatch), absl::MakeSpan(out)).ok());
      const float* const wanted = answers.data() + step * kBatch * kOutputs;
      for (size_t i = 0; i < out.size(); ++i) {
        EXPECT_NEAR(out[i], wanted[i], 2e-5 * (1 + std::fabs(wanted[i]))) << step << " " << i;
      }
      if (step != 6) continue;
      const auto state = learner->Save();
      EXPECT_EQ(state->averaged, 7);
      learner = NewLearner(golden, options);
      ASSERT_TRUE(learner->Load(*state).ok());
    }
  }
}

TEST(ObjectivesTest, MicroBatchesOfAStepAreTakenIntoTheAverageOnce) {
  const Golden golden("objectives.safetensors");
  LearnerOptions options = BaseOptions();
  options.ema_decay = 0.9;
  options.ema_warmup = true;
  const auto learner = NewLearner(golden, options);
  for (int64_t step = 0; step < 3; ++step) {
    StepInput half{step * kBatch, kBatch / 2, kBatch, 3e-3, 1};
    half.last = false;
    ASSERT_TRUE(learner->Step(half).ok());
    ASSERT_TRUE(learner->Step({step * kBatch + kBatch / 2, kBatch / 2, kBatch, 3e-3, 1}).ok());
  }
  EXPECT_EQ(learner->Save()->averaged, 3);
}

TEST(ObjectivesTest, AnOlderStateWithAnAverageHasTakenEachStepIntoIt) {
  const Golden golden("objectives.safetensors");
  LearnerOptions options = BaseOptions();
  options.ema_decay = 0.9;
  const auto learner = NewLearner(golden, options);
  ASSERT_TRUE(learner->Step({0, kBatch, kBatch, 3e-3, 1}).ok());
  Learner::State state = *learner->Save();
  state.averaged = 0;
  ASSERT_TRUE(learner->Load(state).ok());
  EXPECT_EQ(learner->Save()->averaged, 1);
}

TEST(ObjectivesTest, AStateRestoredTrainsOnToTheBit) {
  const Golden golden("objectives.safetensors");
  LearnerOptions options = BaseOptions();
  options.optimizer.kind = OptimizerKind::kRmsProp;
  options.optimizer.momentum = 0.5;
  options.ema_decay = 0.9;
  const auto first = NewLearner(golden, options), second = NewLearner(golden, options);
  for (int64_t step = 0; step < 4; ++step) {
    ASSERT_TRUE(first->Step({step * kBatch, kBatch, kBatch, 1e-3, 1}).ok());
  }
  const auto state = first->Save();
  EXPECT_EQ(state->slots.size(), first->SlotNames().size());
  for (const char* name : {"weights", "best_weights", "ema", "square_avg", "momentum_buffer"}) {
    EXPECT_EQ(state->slots.count(name), 1u) << name;
  }
  ASSERT_TRUE(second->Load(*state).ok());
  for (int64_t step = 4; step < 8; ++step) {
    ASSERT_TRUE(first->Step({step * kBatch, kBatch, kBatch, 1e-3, 1}).ok());
    ASSERT_TRUE(second->Step({step * kBatch, kBatch, kBatch, 1e-3, 1}).ok());
  }
  EXPECT_EQ(first->Save()->slots, second->Save()->slots);
}

TEST(ObjectivesTest, AStateOfAnotherOptimizerIsRefused) {
  const Golden golden("objectives.safetensors");
  LearnerOptions options = BaseOptions();
  const auto adamw = NewLearner(golden, options);
  options.optimizer.kind = OptimizerKind::kSgd;
  const auto sgd = NewLearner(golden, options);
  EXPECT_TRUE(absl::IsInvalidArgument(adamw->Load(*sgd->Save())));
  EXPECT_TRUE(absl::IsInvalidArgument(sgd->Load(*adamw->Save())));
}

TEST(ObjectivesTest, FourMicroBatchesAreOneStepOfTheWholeBatch) {
  const Golden golden("objectives.safetensors");
  for (const LossKind loss : {LossKind::kMse, LossKind::kCrossEntropy}) {
    LearnerOptions options = BaseOptions();
    options.objective.loss = loss;
    if (loss == LossKind::kCrossEntropy) options.objective.class_weights = {0.5f, 1.0f, 2.0f};
    const auto whole = NewLearner(golden, options), parts = NewLearner(golden, options);
    constexpr int64_t kWhole = 4 * kBatch;
    for (int64_t step = 0; step < 5; ++step) {
      ASSERT_TRUE(whole->Step({step * kWhole, kWhole, kWhole, 3e-3, 1}).ok());
      int64_t begin = step * kWhole;
      for (const int64_t rows : {kBatch, 2 * kBatch, kBatch - 1, int64_t{1}}) {
        StepInput input{begin, rows, kWhole, 3e-3, 1};
        begin += rows;
        input.last = begin == (step + 1) * kWhole;
        ASSERT_TRUE(parts->Step(input).ok());
      }
    }
    auto one = whole->Save(), four = parts->Save();
    EXPECT_EQ(four->optimizer_steps, 5);
    for (size_t i = 0; i < one->slots[kWeightsSlot].size(); ++i) {
      EXPECT_NEAR(one->slots[kWeightsSlot][i], four->slots[kWeightsSlot][i], 2e-6) << i;
    }
    EXPECT_NEAR(whole->ConsumeLoss()->mean(), parts->ConsumeLoss()->mean(), 1e-5);
  }
}

TEST(ObjectivesTest, TheGradientNormIsReportedBeforeClipping) {
  const Golden golden("objectives.safetensors");
  LearnerOptions options = BaseOptions();
  options.clip_norm = 1e-3;
  const auto learner = NewLearner(golden, options);
  ASSERT_TRUE(learner->Step({0, kBatch, kBatch, 1e-3, 1}).ok());
  EXPECT_GT(learner->ConsumeLoss()->gradient_norm, 0.5);
}

// ---- Windows ----

constexpr int64_t kSeries = 40, kFeatures = 2;

LearnerData SeriesData() {
  LearnerData data;
  data.rows.rows = kSeries;
  for (int64_t i = 0; i < kSeries; ++i) {
    for (int64_t f = 0; f < kFeatures; ++f) {
      data.rows.numeric.push_back(std::sin(static_cast<float>(3 * i + f)));
    }
    data.rows.codes.push_back(static_cast<int32_t>(i % 5));
    data.values.push_back(std::cos(static_cast<float>(i)));
  }
  return data;
}

LearnerOptions SeriesOptions(int64_t window, int64_t horizon) {
  LearnerOptions options;
  MlpOf(options.model).hidden = {8};
  MlpOf(options.model).dropout = 0;
  options.shape.numeric = kFeatures;
  options.shape.window = window;
  options.horizon = horizon;
  options.objective.loss = LossKind::kMse;
  return options;
}

// The same samples as plain rows, with their steps side by side.
TEST(WindowTest, AWindowIsItsStepsSideBySideAndTheTargetIsTheHorizonLater) {
  constexpr int64_t kWindow = 3, kHorizon = 2, kContext = kWindow - 1 + kHorizon;
  LearnerData series = SeriesData(), flat;
  series.rows.codes.clear();
  flat.rows.rows = kSeries - kContext;
  for (int64_t row = kContext; row < kSeries; ++row) {
    for (int64_t step = row - kContext; step <= row - kHorizon; ++step) {
      for (int64_t f = 0; f < kFeatures; ++f) {
        flat.rows.numeric.push_back(series.rows.numeric[static_cast<size_t>(step * kFeatures + f)]);
      }
    }
    flat.values.push_back(series.values[static_cast<size_t>(row)]);
  }
  const EncodedRows passed = series.rows;
  LearnerOptions flat_options = SeriesOptions(1, 0);
  flat_options.shape.numeric = kWindow * kFeatures;
  auto windows = *Learner::Create(SeriesOptions(kWindow, kHorizon), std::move(series));
  auto rows = *Learner::Create(flat_options, std::move(flat));
  ASSERT_TRUE(windows->SetOrder(RowsFrom(kContext, kSeries - kContext)).ok());
  ASSERT_TRUE(rows->SetOrder(RowsFrom(0, kSeries - kContext)).ok());
  for (int64_t step = 0; step < 3; ++step) {
    ASSERT_TRUE(windows->Step({step * 12, 12, 12, 1e-2, 1}).ok());
    ASSERT_TRUE(rows->Step({step * 12, 12, 12, 1e-2, 1}).ok());
    EXPECT_EQ(windows->ConsumeLoss()->sum, rows->ConsumeLoss()->sum) << step;
  }
  std::vector<float> resident(kSeries - kContext), others(kSeries - kContext), plain(others.size());
  ASSERT_TRUE(windows
                  ->Predict(Weights::kLast, RowsFrom(kContext, kSeries - kContext),
                            absl::MakeSpan(resident))
                  .ok());
  ASSERT_TRUE(windows->Predict(Weights::kLast, passed, absl::MakeSpan(others)).ok());
  ASSERT_TRUE(
      rows->Predict(Weights::kLast, RowsFrom(0, kSeries - kContext), absl::MakeSpan(plain)).ok());
  EXPECT_EQ(resident, plain);
  EXPECT_EQ(others, plain);
}

TEST(WindowTest, ARowWithoutEnoughHistoryIsRefused) {
  LearnerOptions options = SeriesOptions(3, 2);
  options.shape.cardinalities = {5};
  auto learner = *Learner::Create(options, SeriesData());
  EXPECT_TRUE(absl::IsOutOfRange(learner->SetOrder({3})));
  EXPECT_TRUE(absl::IsOutOfRange(learner->SetOrder({4, static_cast<int32_t>(kSeries)})));
  EXPECT_TRUE(learner->SetOrder({4, 39}).ok());
  EXPECT_TRUE(learner->Step({0, 2, 2, 1e-3, 1}).ok());
  std::vector<float> out(1);
  EXPECT_TRUE(
      absl::IsOutOfRange(learner->Predict(Weights::kLast, RowsFrom(0, 1), absl::MakeSpan(out))));
}

TEST(LearnerOptionsTest, OptionsThatContradictTheDataAreRefused) {
  const auto refused = [](const std::function<void(LearnerOptions&)>& change) {
    LearnerOptions options = SeriesOptions(1, 0);
    options.shape.cardinalities = {5};
    change(options);
    const absl::Status status = Learner::Create(options, SeriesData()).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status.ToString();
  };
  refused([](LearnerOptions& options) { options.shape.outputs = 2; });
  refused([](LearnerOptions& options) { options.shape.window = 0; });
  refused([](LearnerOptions& options) { options.horizon = -1; });
  refused([](LearnerOptions& options) { options.objective.class_weights = {1}; });
  refused([](LearnerOptions& options) { options.objective.loss = LossKind::kCrossEntropy; });
  refused([](LearnerOptions& options) { options.target_mean = {1, 2}; });
  refused([](LearnerOptions& options) { options.optimizer.nesterov = true; });
}

TEST(LearnerOptionsTest, CodesAndClassesOutOfRangeAreRefused) {
  LearnerOptions options = SeriesOptions(1, 0);
  options.shape.cardinalities = {4};  // the data have 5
  EXPECT_TRUE(absl::IsInvalidArgument(Learner::Create(options, SeriesData()).status()));
  options.shape.cardinalities = {5};
  EncodedRows passed = SeriesData().rows;
  passed.codes[7] = -1;
  auto learner = *Learner::Create(options, SeriesData());
  std::vector<float> out(kSeries);
  EXPECT_TRUE(
      absl::IsInvalidArgument(learner->Predict(Weights::kLast, passed, absl::MakeSpan(out))));

  options.objective.loss = LossKind::kCrossEntropy;
  options.shape.outputs = 3;
  LearnerData data = SeriesData();
  data.classes.assign(kSeries, 3);
  EXPECT_TRUE(absl::IsInvalidArgument(Learner::Create(options, data).status()));
  data.classes.assign(kSeries, 2);
  data.classes[1] = -1;
  auto classifier = *Learner::Create(options, data);
  EXPECT_TRUE(classifier->SetOrder({0, 2}).ok());
  EXPECT_TRUE(absl::IsOutOfRange(classifier->SetOrder({0, 1})));
}

}  // namespace
}  // namespace traind
