// Models over windows of a series against PyTorch.
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

// The same as in tests/golden/sequences_golden.py.
constexpr int64_t kSteps = 20, kBatch = 16, kNumeric = 5, kWindow = 7, kHorizon = 2;
constexpr int64_t kContext = kWindow - 1 + kHorizon, kRows = kSteps * kBatch + kContext;
constexpr double kLearningRate = 3e-3;

LearnerOptions Options(int64_t window, int64_t outputs, bool classification) {
  LearnerOptions options;
  options.model = ModelOf("lstm", R"({"hidden":12,"dropout":0})");
  options.shape.numeric = kNumeric;
  options.shape.cardinalities = {6, 9};
  options.shape.window = window;
  options.shape.outputs = outputs;
  options.horizon = window > 1 ? kHorizon : 0;
  options.objective.loss = classification ? LossKind::kCrossEntropy : LossKind::kMse;
  return options;
}

std::unique_ptr<Learner> NewLearner(const Golden& golden, const LearnerOptions& options) {
  LearnerData data;
  data.rows.rows = kRows;
  data.rows.numeric = golden.Floats("in.numeric");
  data.rows.codes = golden.Integers("in.codes");
  data.classes = golden.Integers("in.classes");
  const std::vector<float> values = golden.Floats("in.values");  // [rows, 3]
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t k = 0; k < options.shape.outputs; ++k) {
      data.values.push_back(values[static_cast<size_t>(row * 3 + k)]);
    }
  }
  SetTorchThreads(1);  // at these sizes more threads would only wait for each other
  auto learner = Learner::Create(options, std::move(data));
  EXPECT_TRUE(learner.ok()) << learner.status().ToString();
  EXPECT_TRUE((*learner)->SetOrder(RowsFrom(kContext, kSteps * kBatch)).ok());
  return *std::move(learner);
}

void ExpectRun(const std::string& run, const LearnerOptions& base) {
  const Golden golden("sequences.safetensors");
  const std::vector<float> losses = golden.Floats("out." + run + ".losses");
  const std::vector<float> predictions = golden.Floats("out." + run + ".predictions");
  for (const bool handwritten : {true, false}) {
    SCOPED_TRACE(run + (handwritten ? ", handwritten" : ", autograd"));
    LearnerOptions options = base;
    options.paths.handwritten_backward = handwritten;
    const auto learner = NewLearner(golden, options);
    LoadWeights(golden, *learner, run + ".");
    for (int64_t step = 0; step < kSteps; ++step) {
      const absl::Status stepped = learner->Step({step * kBatch, kBatch, kBatch, kLearningRate, 1});
      ASSERT_TRUE(stepped.ok()) << stepped.ToString();
      const double wanted = losses[static_cast<size_t>(step)];
      EXPECT_NEAR(learner->ConsumeLoss()->mean(), wanted, 1e-5 * wanted) << "step " << step;
    }
    std::vector<float> out(predictions.size());
    ASSERT_TRUE(
        learner->Predict(Weights::kLast, RowsFrom(kContext, kBatch), absl::MakeSpan(out)).ok());
    for (size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], predictions[i], 5e-5) << i;
  }
}

TEST(LstmTest, LossesOverWindowsAreThoseOfPyTorchStepByStep) {
  ExpectRun("lstm", Options(kWindow, 2, false));
}

TEST(SequencesTest, ARankWithoutRowsInTheLastBatchStepsAllTheSame) {
  for (const char* network : {"lstm", "transformer"}) {
    for (const bool handwritten : {true, false}) {
      SCOPED_TRACE(std::string(network) + (handwritten ? ", handwritten" : ", autograd"));
      LearnerOptions options = Options(kWindow, 2, false);
      options.model = ModelOf(network);
      options.paths.handwritten_backward = handwritten;
      const auto learner = NewLearner(Golden("sequences.safetensors"), options);
      const absl::Status stepped = learner->Step({0, 0, 1, kLearningRate, 1});
      EXPECT_TRUE(stepped.ok()) << stepped.ToString();
      EXPECT_EQ(learner->ConsumeLoss()->weight, 0);
      const auto saved = learner->Save();
      ASSERT_TRUE(saved.ok()) << saved.status();
      for (const float weight : saved->slots.at(kWeightsSlot)) {
        ASSERT_TRUE(std::isfinite(weight));
      }
    }
  }
}

TEST(LstmTest, ARowIsASequenceOfOneStep) { ExpectRun("lstm_row", Options(1, 3, true)); }

LearnerOptions TransformerOptions(int64_t window, int64_t outputs, bool classification) {
  LearnerOptions options = Options(window, outputs, classification);
  options.model = ModelOf("transformer", R"({"width":16,"feedforward":24,"dropout":0})");
  return options;
}

TEST(TransformerTest, LossesWithNormsAfterAreThoseOfPyTorchStepByStep) {
  ExpectRun("post_norm", TransformerOptions(kWindow, 2, false));
}

TEST(TransformerTest, LossesWithNormsBeforeAreThoseOfPyTorchStepByStep) {
  LearnerOptions options = TransformerOptions(kWindow, 1, false);
  options.model.transformer->norm = "pre";
  ExpectRun("pre_norm", options);
}

TEST(TransformerTest, LossesOfTheStepsMeanAreThoseOfPyTorchStepByStep) {
  LearnerOptions options = TransformerOptions(kWindow, 3, true);
  options.model.transformer->norm = "pre";
  options.model.transformer->pooling = "mean";
  ExpectRun("mean_pooling", options);
}

TEST(TransformerTest, ARowIsASequenceOfOneStep) {
  ExpectRun("transformer_row", TransformerOptions(1, 1, false));
}

TEST(SequencesTest, InitialWeightsAreSpreadAsPyTorchSpreadsThem) {
  const Golden golden("sequences.safetensors");
  LearnerOptions options = Options(kWindow, 2, false);
  // The mean square of a uniform distribution on [-a, a) is a^2 / 3, that of a normal its variance.
  const auto mean_square = [&](const char* architecture, const std::string& name) {
    options.model = ModelOf(architecture, architecture == absl::string_view("lstm")
                                              ? R"({"hidden":64})"
                                              : R"({"width":64,"feedforward":24})");
    const auto learner = NewLearner(golden, options);
    const std::vector<float> weights = learner->Save()->slots[kWeightsSlot];
    size_t begin = 0;
    for (const ParameterInfo& parameter : learner->layout()) {
      const size_t size = static_cast<size_t>(parameter.size);
      if (parameter.name == name) {
        double sum = 0;
        for (size_t i = begin; i < begin + size; ++i) sum += weights[i] * weights[i];
        return sum / static_cast<double>(size);
      }
      begin += size;
    }
    ADD_FAILURE() << name;
    return 0.0;
  };
  EXPECT_NEAR(mean_square("lstm", "lstm.weight_hh_l1"), 1.0 / 64 / 3, 3e-4);
  EXPECT_NEAR(mean_square("lstm", "lstm.bias_hh_l0"), 1.0 / 64 / 3, 1.5e-3);
  const std::string layer = "encoder.layers.1.";
  EXPECT_NEAR(mean_square("transformer", layer + "self_attn.in_proj_weight"), 6.0 / 256 / 3, 3e-4);
  EXPECT_NEAR(mean_square("transformer", layer + "self_attn.out_proj.weight"), 1.0 / 64 / 3, 5e-4);
  EXPECT_EQ(mean_square("transformer", layer + "self_attn.in_proj_bias"), 0);
  EXPECT_EQ(mean_square("transformer", layer + "norm2.weight"), 1);
  EXPECT_NEAR(mean_square("transformer", "position"), 4e-4, 1e-4);
}

TEST(SequencesTest, Bf16LossesStayNearThoseOfFloat32) {
  const Golden golden("sequences.safetensors");
  for (const char* architecture : {"lstm", "transformer"}) {
    LearnerOptions options = architecture == absl::string_view("lstm")
                                 ? Options(kWindow, 2, false)
                                 : TransformerOptions(kWindow, 2, false);
    const auto whole = NewLearner(golden, options);
    options.precision = Precision::kBf16;
    const auto half = NewLearner(golden, options);
    for (int64_t step = 0; step < 5; ++step) {
      ASSERT_TRUE(whole->Step({step * kBatch, kBatch, kBatch, kLearningRate, 1}).ok());
      const absl::Status stepped = half->Step({step * kBatch, kBatch, kBatch, kLearningRate, 1});
      ASSERT_TRUE(stepped.ok()) << stepped.ToString();
      const double wanted = whole->ConsumeLoss()->mean(), loss = half->ConsumeLoss()->mean();
      EXPECT_NEAR(loss, wanted, 0.03 * wanted) << architecture << " step " << step;
      EXPECT_NE(loss, wanted);
    }
  }
}

}  // namespace
}  // namespace traind
