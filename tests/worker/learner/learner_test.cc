#include "worker/learner/learner.h"

#include <ATen/ops/full.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/worker/device/limited_memory.h"
#include "tests/worker/model/golden.h"
#include "tests/worker/model/model_of.h"
#include "worker/device/guard.h"
#include "worker/learner/loss_scaler.h"
#include "worker/model/networks/dropout.h"
#include "worker/train/schedule.h"

namespace traind {
namespace {

// The same as in tests/golden/mlp_golden.py.
constexpr int64_t kSteps = 20, kBatch = 32;
constexpr double kLearningRate = 3e-3;

std::vector<int32_t> FirstRows(int64_t count) { return RowsFrom(0, count); }

// The run that the golden file recorded, from its initial weights on.
std::unique_ptr<Learner> GoldenLearner(const Golden& golden, LearnerOptions options) {
  MlpOf(options.model).dropout = 0;
  LearnerData data;
  data.rows.rows = kSteps * kBatch;
  data.rows.numeric = golden.Floats("in.numeric");
  data.rows.codes = golden.Integers("in.codes");
  if (options.objective.loss == LossKind::kCrossEntropy) {
    data.classes = golden.Integers("in.target");
  } else {
    data.values = golden.Floats("in.target");
  }
  auto learner = Learner::Create(options, std::move(data));
  EXPECT_TRUE(learner.ok()) << learner.status().ToString();
  LoadWeights(golden, **learner);
  EXPECT_TRUE((*learner)->SetOrder(FirstRows(kSteps * kBatch)).ok());
  return *std::move(learner);
}

void ExpectGolden(const Golden& golden, Learner& learner) {
  const std::vector<float> expected = golden.Floats("out.losses");
  for (int64_t step = 0; step < kSteps; ++step) {
    const absl::Status stepped = learner.Step({step * kBatch, kBatch, kBatch, kLearningRate, 1});
    ASSERT_TRUE(stepped.ok()) << stepped.ToString();
    const auto loss = learner.ConsumeLoss();
    ASSERT_TRUE(loss.ok());
    ASSERT_EQ(loss->weight, kBatch);
    const double wanted = expected[static_cast<size_t>(step)];
    EXPECT_NEAR(loss->mean(), wanted, 1e-5 * wanted) << "step " << step;
  }
  const std::vector<float> predictions = golden.Floats("out.predictions");
  std::vector<float> out(predictions.size());
  ASSERT_TRUE(learner.Predict(Weights::kLast, FirstRows(kBatch), absl::MakeSpan(out)).ok());
  for (size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], predictions[i], 2e-5) << i;
}

LearnerOptions NumericOptions() {
  LearnerOptions options;
  MlpOf(options.model).hidden = {24, 16};
  options.shape.numeric = 12;
  options.shape.outputs = 5;
  return options;
}

LearnerOptions EmbeddingOptions() {
  LearnerOptions options;
  options.objective.loss = LossKind::kMse;
  MlpOf(options.model).hidden = {20};
  options.shape.numeric = 3;
  options.shape.cardinalities = {7, 40, 3};
  return options;
}

TEST(LearnerTest, ClassifyingLossesAreThoseOfPyTorchStepByStep) {
  const Golden golden("mlp_numeric.safetensors");
  ExpectGolden(golden, *GoldenLearner(golden, NumericOptions()));
}

TEST(LearnerTest, RegressionLossesWithEmbeddingsAndClippingAreThoseOfPyTorch) {
  const Golden golden("mlp_embeddings.safetensors");
  ExpectGolden(golden, *GoldenLearner(golden, EmbeddingOptions()));
}

LearnerOptions MembersOptions() {
  LearnerOptions options;
  options.model = ModelOf("mlp", R"({"hidden":[24,16],"ensemble_members":4})");
  options.shape.numeric = 6;
  options.shape.cardinalities = {5};
  options.shape.outputs = 3;
  return options;
}

LearnerOptions PeriodicOptions() {
  LearnerOptions options;
  options.objective.loss = LossKind::kMse;
  options.model = ModelOf("mlp", R"({"hidden":[20],"ensemble_members":3,)"
                                 R"("numeric_embedding":{"frequencies":5,"size":4}})");
  options.shape.numeric = 4;
  options.shape.cardinalities = {7, 3};
  return options;
}

TEST(LearnerTest, MembersOfOneNetworkTrainAndAnswerAsInPyTorch) {
  const Golden golden("mlp_members.safetensors");
  ExpectGolden(golden, *GoldenLearner(golden, MembersOptions()));
}

TEST(LearnerTest, PeriodicEmbeddingsOfNumbersTrainAsInPyTorch) {
  const Golden golden("mlp_periodic.safetensors");
  ExpectGolden(golden, *GoldenLearner(golden, PeriodicOptions()));
}

TEST(LearnerTest, MembersPredictOtherRowsAsTheirOwn) {
  for (const bool periodic : {false, true}) {
    const Golden golden(periodic ? "mlp_periodic.safetensors" : "mlp_members.safetensors");
    const auto learner = GoldenLearner(golden, periodic ? PeriodicOptions() : MembersOptions());
    EncodedRows rows;
    rows.rows = kSteps * kBatch;
    rows.numeric = golden.Floats("in.numeric");
    rows.codes = golden.Integers("in.codes");
    std::vector<float> own(static_cast<size_t>(rows.rows * (periodic ? 1 : 3))), others = own;
    ASSERT_TRUE(learner->Predict(Weights::kLast, FirstRows(rows.rows), absl::MakeSpan(own)).ok());
    ASSERT_TRUE(learner->Predict(Weights::kLast, rows, absl::MakeSpan(others)).ok());
    EXPECT_EQ(own, others);
    EXPECT_NE(own.front(), own.back());
  }
}

TEST(LearnerTest, MembersBeginDifferently) {
  for (const char* more : {"", R"(,"numeric_embedding":{})"}) {
    LearnerOptions options;
    options.model =
        ModelOf("mlp", absl::StrCat(R"({"hidden":[8],"ensemble_members":2)", more, "}"));
    options.shape.numeric = 16;
    options.shape.outputs = 2;
    LearnerData data;
    data.rows.rows = 1;
    data.rows.numeric.assign(16, 0.5f);
    data.classes = {0};
    const auto learner = Learner::Create(options, std::move(data));
    ASSERT_TRUE(learner.ok()) << learner.status().ToString();
    const std::vector<float> weights = (*learner)->Save()->slots[kWeightsSlot];
    size_t begin = 0;
    for (const ParameterInfo& parameter : (*learner)->layout()) {
      const auto size = static_cast<size_t>(parameter.size);
      if (parameter.name == "factors") {
        const std::vector<float> first(&weights[begin], &weights[begin + size / 2]);
        const std::vector<float> second(&weights[begin + size / 2], &weights[begin] + size);
        EXPECT_NE(first, second);
        for (const float factor : first) EXPECT_EQ(std::fabs(factor) == 1, *more == 0) << factor;
      }
      begin += size;
    }
  }
}

TEST(LearnerTest, TwoRunsFromOneSeedAreEqualToTheBit) {
  const Golden golden("mlp_numeric.safetensors");
  std::vector<std::vector<float>> weights;
  for (int run = 0; run < 2; ++run) {
    LearnerOptions options = NumericOptions();
    auto learner = GoldenLearner(golden, options);
    for (int64_t step = 0; step < 5; ++step) {
      ASSERT_TRUE(learner->Step({step * kBatch, kBatch, kBatch, kLearningRate, 9}).ok());
    }
    weights.push_back(learner->Save()->slots[kWeightsSlot]);
  }
  EXPECT_EQ(weights[0], weights[1]);
}

TEST(LearnerTest, DropoutFollowsItsSeedAlone) {
  LearnerOptions options;
  MlpOf(options.model).hidden = {32};
  MlpOf(options.model).dropout = 0.5;
  options.shape.numeric = 4;
  options.shape.outputs = 2;
  const auto run = [&options](uint64_t dropout_seed) {
    LearnerData data;
    data.rows.rows = 64;
    for (int i = 0; i < 64 * 4; ++i) {
      data.rows.numeric.push_back(std::sin(static_cast<float>(i)));
    }
    for (int i = 0; i < 64; ++i) data.classes.push_back(i % 2);
    auto learner = *Learner::Create(options, std::move(data));
    EXPECT_TRUE(learner->SetOrder(FirstRows(64)).ok());
    EXPECT_TRUE(learner->Step({0, 64, 64, 1e-3, dropout_seed}).ok());
    return learner->Save()->slots[kWeightsSlot];
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

TEST(DropoutTest, TheShareDroppedIsAsAskedAndTheMeanStays) {
  const at::Tensor ones = at::full({1001, 999}, 1.0f, at::kFloat);
  for (const double p : {0.0, 0.1, 0.5, 0.9}) {
    const at::Tensor out = Dropout(ones, p, 5);
    EXPECT_NEAR(out.eq(0).to(at::kFloat).mean().item<double>(), p, 0.002) << p;
    EXPECT_NEAR(out.mean().item<double>(), 1, 0.01) << p;
  }
}

TEST(DropoutTest, NeighboursAreDroppedIndependently) {
  const at::Tensor kept =
      Dropout(at::full({4000, 256}, 1.0f, at::kFloat), 0.5, 11).ne(0).to(at::kFloat).sub(0.5);
  const double columns =
      (kept.narrow(1, 0, 255).mul(kept.narrow(1, 1, 255))).mean().item<double>() * 4;
  const double rows =
      (kept.narrow(0, 0, 3999).mul(kept.narrow(0, 1, 3999))).mean().item<double>() * 4;
  EXPECT_NEAR(columns, 0, 0.005);
  EXPECT_NEAR(rows, 0, 0.005);
}

TEST(LearnerTest, InitialWeightsFollowTheSeedAndUnseenCategoriesAreSilent) {
  LearnerOptions options = EmbeddingOptions();
  const auto weights = [&options](uint64_t seed) {
    options.seed = seed;
    LearnerData data;
    data.rows.rows = 1;
    data.rows.numeric = {0, 0, 0};
    data.rows.codes = {0, 0, 0};
    data.values = {1};
    return (*Learner::Create(options, std::move(data)))->Save()->slots[kWeightsSlot];
  };
  const std::vector<float> first = weights(1);
  EXPECT_EQ(first, weights(1));
  EXPECT_NE(first, weights(2));
  // Row 1 of embeddings.0 [7, 4] stands for values that no training row has.
  EXPECT_NE(first[0], 0);
  for (size_t i = 4; i < 8; ++i) EXPECT_EQ(first[i], 0);
  EXPECT_NE(first[8], 0);
}

TEST(LearnerTest, TheBestWeightsPredictWithoutDisturbingTheLast) {
  const Golden golden("mlp_numeric.safetensors");
  auto learner = GoldenLearner(golden, NumericOptions());
  std::vector<float> before(kBatch * 5), best(kBatch * 5), last(kBatch * 5);
  const auto rows = FirstRows(kBatch);
  ASSERT_TRUE(learner->Predict(Weights::kLast, rows, absl::MakeSpan(before)).ok());
  ASSERT_TRUE(learner->KeepBest().ok());
  ASSERT_TRUE(learner->Step({0, kBatch, kBatch, 0.1, 1}).ok());
  const std::vector<float> weights = learner->Save()->slots[kWeightsSlot];
  ASSERT_TRUE(learner->Predict(Weights::kBest, rows, absl::MakeSpan(best)).ok());
  ASSERT_TRUE(learner->Predict(Weights::kLast, rows, absl::MakeSpan(last)).ok());
  EXPECT_EQ(best, before);
  EXPECT_NE(last, before);
  EXPECT_EQ(learner->Save()->slots[kWeightsSlot], weights);
}

TEST(LearnerTest, RowsEncodedElsewherePredictAsResidentOnesDo) {
  const Golden golden("mlp_embeddings.safetensors");
  auto learner = GoldenLearner(golden, EmbeddingOptions());
  const int64_t rows = kSteps * kBatch;
  EncodedRows encoded;
  encoded.rows = rows;
  encoded.numeric = golden.Floats("in.numeric");
  encoded.codes = golden.Integers("in.codes");
  std::vector<float> resident(static_cast<size_t>(rows)), passed(static_cast<size_t>(rows));
  ASSERT_TRUE(learner->Predict(Weights::kLast, FirstRows(rows), absl::MakeSpan(resident)).ok());
  ASSERT_TRUE(learner->Predict(Weights::kLast, encoded, absl::MakeSpan(passed)).ok());
  EXPECT_EQ(resident, passed);
}

void ExpectBf16NearFloat32(const char* file, const LearnerOptions& options) {
  const Golden golden(file);
  auto learner = GoldenLearner(golden, options);
  ASSERT_TRUE(learner->SetPrecision(Precision::kBf16).ok());
  const std::vector<float> expected = golden.Floats("out.losses");
  for (int64_t step = 0; step < kSteps; ++step) {
    ASSERT_TRUE(learner->Step({step * kBatch, kBatch, kBatch, kLearningRate, 1}).ok());
    const double wanted = expected[static_cast<size_t>(step)];
    EXPECT_NEAR(learner->ConsumeLoss()->mean(), wanted, 0.02 * wanted) << "step " << step;
  }
  // The run was in bf16: float32 would be a thousand times closer.
  std::vector<float> fp32 = golden.Floats("out.predictions"), out(fp32.size());
  ASSERT_TRUE(learner->Predict(Weights::kLast, FirstRows(kBatch), absl::MakeSpan(out)).ok());
  double farthest = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    farthest = std::max<double>(farthest, std::fabs(out[i] - fp32[i]));
  }
  EXPECT_GT(farthest, 1e-4);
}

TEST(LearnerTest, Bf16LossesStayNearThoseOfFloat32) {
  ExpectBf16NearFloat32("mlp_numeric.safetensors", NumericOptions());
}

TEST(LearnerTest, Bf16LossesOfMembersStayNearThoseOfFloat32) {
  ExpectBf16NearFloat32("mlp_members.safetensors", MembersOptions());
  ExpectBf16NearFloat32("mlp_periodic.safetensors", PeriodicOptions());
}

TEST(LearnerTest, ARankWithoutRowsInTheLastBatchStepsAllTheSame) {
  const auto steps = [](const char* file, const LearnerOptions& options) {
    const auto learner = GoldenLearner(Golden(file), options);
    const absl::Status stepped = learner->Step({0, 0, 1, kLearningRate, 1});
    EXPECT_TRUE(stepped.ok()) << stepped.ToString();
    EXPECT_EQ(learner->ConsumeLoss()->weight, 0);
  };
  steps("mlp_numeric.safetensors", NumericOptions());
  steps("mlp_members.safetensors", MembersOptions());
  steps("mlp_periodic.safetensors", PeriodicOptions());
}

// The network's activations of all rows take 250 kB.
TEST(LearnerTest, PredictionsForWhichMemoryRunsOutTakeFewerRowsAtATime) {
  const Golden golden("mlp_members.safetensors");
  const auto learner = GoldenLearner(golden, MembersOptions());
  const std::vector<int32_t> rows = FirstRows(kSteps * kBatch);
  EncodedRows encoded;
  encoded.rows = kSteps * kBatch;
  encoded.numeric = golden.Floats("in.numeric");
  encoded.codes = golden.Integers("in.codes");
  std::vector<float> all(rows.size() * 3), resident(all.size()), passed(all.size());
  ASSERT_TRUE(learner->Predict(Weights::kLast, rows, absl::MakeSpan(all)).ok());
  const int64_t at_once = learner->rows_at_once();
  EXPECT_GT(at_once, encoded.rows);
  {
    const LimitedMemory memory(64 << 10);
    const absl::Status first = learner->Predict(Weights::kLast, rows, absl::MakeSpan(resident));
    ASSERT_TRUE(first.ok()) << first;
    EXPECT_LT(learner->rows_at_once(), encoded.rows / 2);
    EXPECT_GT(learner->rows_at_once(), 1);
  }
  {
    const LimitedMemory memory(16 << 10);
    const int64_t before = learner->rows_at_once();
    const absl::Status second = learner->Predict(Weights::kLast, encoded, absl::MakeSpan(passed));
    ASSERT_TRUE(second.ok()) << second;
    EXPECT_LT(learner->rows_at_once(), before);
  }
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_NEAR(resident[i], all[i], 1e-6) << i;
    EXPECT_NEAR(passed[i], all[i], 1e-6) << i;
  }
  const LimitedMemory memory(100);
  const absl::Status none = learner->Predict(Weights::kLast, rows, absl::MakeSpan(all));
  EXPECT_EQ(FaultOf(none), Fault::kOutOfMemory) << none;
}

TEST(LearnerTest, AnImpossibleSizeIsOutOfMemoryAndNotACrash) {
  LearnerOptions options = NumericOptions();
  MlpOf(options.model).hidden = {int64_t{1} << 24, int64_t{1} << 24};  // 2^48 weights
  LearnerData data;
  data.rows.rows = 1;
  data.rows.numeric.assign(12, 0);
  data.classes = {0};
  EXPECT_TRUE(absl::IsResourceExhausted(Learner::Create(options, std::move(data)).status()));
}

TEST(LossScalerTest, TheScaleFollowsPyTorchsGradScaler) {
  const Golden golden("grad_scaler.safetensors");
  const std::vector<float> found = golden.Floats("found_inf"), scales = golden.Floats("scales");
  LossScaler scaler(c10::kCPU);
  for (size_t i = 0; i < found.size(); ++i) {
    const float value = found[i] != 0 ? std::numeric_limits<float>::infinity() : 1.0f;
    const std::vector<at::Tensor> gradients{at::full({1}, value, at::kFloat)};
    ASSERT_EQ(scaler.Unscale(gradients).item<float>(), found[i]) << i;
    scaler.Update();
    ASSERT_EQ(scaler.scale(), scales[i]) << i;
  }
}

TEST(LossScalerTest, GradientsAreDividedByTheScale) {
  LossScaler scaler(c10::kCPU);
  const std::vector<at::Tensor> gradients{at::full({3}, 65536.0f, at::kFloat)};
  EXPECT_EQ(scaler.Unscale(gradients).item<float>(), 0);
  EXPECT_EQ(gradients[0].sum().item<float>(), 3);
}

TEST(ScheduleTest, RatesAreThoseOfPyTorchsWarmUpAndCosine) {
  const Golden golden("schedule.safetensors");
  const std::vector<float> rates = golden.Floats("rates");
  const Schedule schedule{1e-3, 10, static_cast<int64_t>(rates.size())};
  for (size_t step = 0; step < rates.size(); ++step) {
    EXPECT_NEAR(schedule.LearningRate(static_cast<int64_t>(step)), rates[step], 1e-9) << step;
  }
}

}  // namespace
}  // namespace traind
