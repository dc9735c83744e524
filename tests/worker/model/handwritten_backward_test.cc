// Handwritten passes against autograd: losses, gradients and whole runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "tests/worker/model/model_of.h"
#include "worker/learner/learner.h"
#include "worker/model/kernels/bf16.h"
#include "worker/model/kernels/packed_half_layer.h"

namespace traind {
namespace {

constexpr int64_t kRows = 96, kBatch = 24, kFirst = 16;  // rows before kFirst are history

struct Case {
  std::string name;
  LearnerOptions options;
};

LearnerOptions Base(const std::string& architecture, int64_t window, int64_t outputs,
                    LossKind loss) {
  LearnerOptions options;
  options.model =
      ModelOf(architecture, architecture == "mlp"    ? R"({"hidden":[32,16]})"
                            : architecture == "lstm" ? R"({"hidden":16})"
                                                     : R"({"width":16,"feedforward":24})");
  DropoutOf(options.model) = 0;
  options.shape.numeric = 5;
  options.shape.window = window;
  options.shape.outputs = outputs;
  options.horizon = window > 1 ? 1 : 0;
  options.objective.loss = loss;
  if (loss != LossKind::kCrossEntropy) {
    options.target_mean.assign(static_cast<size_t>(outputs), 0.5);
    options.target_scale.assign(static_cast<size_t>(outputs), 2.0);
  }
  options.seed = 4;
  return options;
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  const auto add = [&cases](std::string name, LearnerOptions options) -> LearnerOptions& {
    cases.push_back({std::move(name), std::move(options)});
    return cases.back().options;
  };
  add("one value", Base("mlp", 1, 1, LossKind::kMse));
  add("dropout", Base("mlp", 1, 1, LossKind::kMse)).model.mlp->dropout = 0.3;
  LearnerOptions& odd = add("odd widths", Base("mlp", 1, 3, LossKind::kHuber));
  odd.model.mlp->hidden = {19, 7, 5};
  odd.model.mlp->dropout = 0.2;
  add("embeddings", Base("mlp", 1, 2, LossKind::kMae)).shape.cardinalities = {4, 7};
  LearnerOptions& classes = add("classes", Base("mlp", 1, 4, LossKind::kCrossEntropy));
  classes.objective.label_smoothing = 0.1;
  classes.objective.class_weights = {1, 2, 0.5f, 1};
  classes.shape.cardinalities = {4, 7};
  add("smape", Base("mlp", 1, 2, LossKind::kSmape));
  add("quantile", Base("mlp", 1, 2, LossKind::kQuantile)).objective.quantile = 0.9;
  add("poisson", Base("mlp", 1, 2, LossKind::kPoisson)).shape.cardinalities = {4, 7};
  add("tweedie", Base("mlp", 1, 1, LossKind::kTweedie)).objective.tweedie_power = 1.7;
  LearnerOptions& window = add("window", Base("mlp", 4, 2, LossKind::kMse));
  window.shape.cardinalities = {4, 7};
  add("one layer", Base("mlp", 1, 1, LossKind::kMse)).model.mlp->hidden = {8};
  add("lstm", Base("lstm", 6, 1, LossKind::kMse));
  LearnerOptions& lstm = add("lstm with all", Base("lstm", 5, 3, LossKind::kCrossEntropy));
  lstm.shape.cardinalities = {4, 7};
  lstm.model = ModelOf("lstm", R"({"hidden":12,"layers":3,"dropout":0.3})");
  add("lstm of a row", Base("lstm", 1, 2, LossKind::kHuber)).shape.cardinalities = {5};
  add("lstm of counts", Base("lstm", 1, 2, LossKind::kPoisson));
  add("encoder", Base("transformer", 6, 1, LossKind::kMse));
  LearnerOptions& encoder = add("encoder with all", Base("transformer", 5, 3, LossKind::kHuber));
  encoder.shape.cardinalities = {4, 7};
  encoder.model.transformer->dropout = 0.3;
  LearnerOptions& before = add("norms before", Base("transformer", 5, 2, LossKind::kMse));
  before.model.transformer->norm = "pre";
  before.model.transformer->dropout = 0.2;
  LearnerOptions& mean =
      add("mean of the steps", Base("transformer", 5, 3, LossKind::kCrossEntropy));
  mean.model.transformer->norm = "pre";
  mean.model.transformer->pooling = "mean";
  LearnerOptions& after = add("norms after, mean", Base("transformer", 5, 1, LossKind::kMae));
  after.model.transformer->pooling = "mean";
  after.model.transformer->dropout = 0.2;
  add("encoder of a row", Base("transformer", 1, 2, LossKind::kMse)).shape.cardinalities = {5};
  return cases;
}

LearnerData Data(const LearnerOptions& options) {
  LearnerData data;
  data.rows.rows = kRows;
  for (int64_t i = 0; i < kRows; ++i) {
    const float at = static_cast<float>(i);
    for (int64_t f = 0; f < options.shape.numeric; ++f) {
      data.rows.numeric.push_back(std::sin(at * (1.3f + static_cast<float>(f))));
    }
    for (const int64_t cardinality : options.shape.cardinalities) {
      data.rows.codes.push_back(static_cast<int32_t>((i * 7) % cardinality));
    }
    data.classes.push_back(static_cast<int32_t>(i % options.shape.outputs));
    for (int64_t k = 0; k < options.shape.outputs; ++k) {
      data.values.push_back(1 + std::cos(at * (0.7f + static_cast<float>(k))));
    }
  }
  return data;
}

std::unique_ptr<Learner> NewLearner(LearnerOptions options, bool handwritten,
                                    bool recompute = false) {
  options.paths.handwritten_backward = handwritten;
  SetTorchThreads(1);  // at these sizes more threads would only wait for each other
  auto learner = Learner::Create(options, Data(options));
  EXPECT_TRUE(learner.ok()) << learner.status().ToString();
  std::vector<int32_t> order(static_cast<size_t>(kRows - kFirst));
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = static_cast<int32_t>(kFirst + (i * 37) % order.size());
  }
  EXPECT_TRUE((*learner)->SetOrder(order).ok());
  const std::string architecture = NetworkName(options.model);
  const bool can = architecture == "transformer" || (architecture == "lstm" && handwritten);
  EXPECT_EQ((*learner)->SetRecompute(recompute), can) << architecture;
  return *std::move(learner);
}

std::vector<float> WeightsOf(Learner& learner) { return learner.Save()->slots[kWeightsSlot]; }

// A step of plain gradient descent at rate 1 moves the weights by their gradient.
std::vector<float> GradientOf(LearnerOptions options, bool handwritten, bool recompute = false) {
  options.optimizer.kind = OptimizerKind::kSgd;
  options.optimizer.weight_decay = 0;
  options.clip_norm = 0;
  const auto learner = NewLearner(options, handwritten, recompute);
  std::vector<float> gradient = WeightsOf(*learner);
  const absl::Status stepped = learner->Step({0, kBatch, kBatch, 1.0, 77});
  EXPECT_TRUE(stepped.ok()) << stepped.ToString();
  const std::vector<float> after = WeightsOf(*learner);
  for (size_t i = 0; i < gradient.size(); ++i) gradient[i] -= after[i];
  return gradient;
}

TEST(HandwrittenBackwardTest, GradientsEqualAutograds) {
  for (const Case& one : Cases()) {
    const std::vector<float> plain = GradientOf(one.options, false);
    const std::vector<float> handwritten = GradientOf(one.options, true);
    float largest = 0;
    for (const float value : plain) largest = std::max(largest, std::fabs(value));
    ASSERT_GT(largest, 1e-3) << one.name;
    for (size_t i = 0; i < plain.size(); ++i) {
      ASSERT_NEAR(handwritten[i], plain[i], 3e-6 * std::max(largest, 1.0f)) << one.name << " " << i;
    }
  }
}

TEST(HandwrittenBackwardTest, RunsWithClippingAndMomentsStayTogether) {
  for (const Case& one : Cases()) {
    SCOPED_TRACE(one.name);
    LearnerOptions options = one.options;
    options.clip_norm = 0.5;
    const auto plain = NewLearner(options, false), handwritten = NewLearner(options, true);
    for (int64_t step = 0; step < 9; ++step) {
      const int64_t begin = step % 3 * kBatch;
      const StepInput input{begin, kBatch, kBatch, 3e-3, static_cast<uint64_t>(step)};
      ASSERT_TRUE(plain->Step(input).ok());
      ASSERT_TRUE(handwritten->Step(input).ok());
      const auto wanted = plain->ConsumeLoss(), loss = handwritten->ConsumeLoss();
      EXPECT_NEAR(loss->mean(), wanted->mean(), 1e-5 * std::fabs(wanted->mean())) << step;
      EXPECT_EQ(loss->weight, wanted->weight);
    }
  }
}

TEST(HandwrittenBackwardTest, MicroBatchesAddUp) {
  for (const Case& one : Cases()) {
    ModelSpec model = one.options.model;
    if (DropoutOf(model) > 0) continue;  // a part's mask is another
    const auto whole = NewLearner(one.options, true), parts = NewLearner(one.options, true);
    ASSERT_TRUE(whole->Step({0, 48, 48, 1e-2, 1}).ok());
    for (const int64_t begin : {0, 10, 40}) {
      StepInput input{begin, begin == 0 ? 10 : (begin == 10 ? 30 : 8), 48, 1e-2, 1};
      input.last = begin == 40;
      ASSERT_TRUE(parts->Step(input).ok());
    }
    const double norm = whole->ConsumeLoss()->gradient_norm;
    EXPECT_NEAR(parts->ConsumeLoss()->gradient_norm, norm, 1e-5 * norm) << one.name;
  }
}

TEST(HandwrittenBackwardTest, InBf16LossesStayNearThoseOfFloat32) {
  for (const Case& one : Cases()) {
    LearnerOptions options = one.options;
    const auto whole = NewLearner(options, true);
    options.precision = Precision::kBf16;
    const auto half = NewLearner(options, true);
    for (int64_t step = 0; step < 6; ++step) {
      const StepInput input{step % 3 * kBatch, kBatch, kBatch, 3e-3, static_cast<uint64_t>(step)};
      ASSERT_TRUE(whole->Step(input).ok());
      const absl::Status stepped = half->Step(input);
      ASSERT_TRUE(stepped.ok()) << stepped.ToString();
      const double wanted = whole->ConsumeLoss()->mean(), loss = half->ConsumeLoss()->mean();
      EXPECT_NEAR(loss, wanted, 0.03 * wanted) << one.name << " step " << step;
      EXPECT_NE(loss, wanted) << one.name;
    }
  }
}

TEST(RecomputeTest, GradientsAreThoseOfActivationsThatWereKept) {
  for (const Case& one : Cases()) {
    for (const bool handwritten : {true, false}) {
      const std::vector<float> kept = GradientOf(one.options, handwritten);
      const std::vector<float> again = GradientOf(one.options, handwritten, /*recompute=*/true);
      for (size_t i = 0; i < kept.size(); ++i) {
        ASSERT_NEAR(again[i], kept[i], 1e-6) << one.name << " " << handwritten << " " << i;
      }
    }
  }
}

TEST(RecomputeTest, RunsThatSwitchItOnAndOffStayTogetherInEachPrecision) {
  for (const Case& one : Cases()) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
      SCOPED_TRACE(one.name);
      LearnerOptions options = one.options;
      const auto kept = NewLearner(options, true), again = NewLearner(options, true, true);
      ASSERT_TRUE(kept->SetPrecision(precision).ok());
      ASSERT_TRUE(again->SetPrecision(precision).ok());
      // A smaller batch in between, as at the end of an epoch.
      for (int64_t step = 0; step < 8; ++step) {
        const int64_t rows = step == 3 ? 5 : kBatch;
        const StepInput input{step % 3 * kBatch, rows, rows, 3e-3, static_cast<uint64_t>(step)};
        if (step == 6) again->SetRecompute(false);
        ASSERT_TRUE(kept->Step(input).ok());
        const absl::Status stepped = again->Step(input);
        ASSERT_TRUE(stepped.ok()) << stepped.ToString();
        const double wanted = kept->ConsumeLoss()->mean();
        EXPECT_NEAR(again->ConsumeLoss()->mean(), wanted, 1e-6 * std::fabs(wanted)) << step;
      }
    }
  }
}

// Returns the state for a model with shorter windows: its positions are those of the last
// steps.
Learner::State WithLastPositions(Learner::State state, const ParameterLayout& from, int64_t rows) {
  for (auto& [name, values] : state.slots) {
    auto at = values.begin();
    for (const ParameterInfo& info : from) {
      if (info.name == "position") {
        at = values.erase(at, at + (info.shape[0] - rows) * info.shape[1]);
        break;
      }
      at += info.size;
    }
  }
  return state;
}

TEST(ShortenWindowTest, AModelOfShortenedWindowsIsOneThatNeverHadMore) {
  constexpr int64_t kSteps = 3;
  for (const Case& one : Cases()) {
    if (one.options.shape.window <= kSteps || one.options.model.mlp.has_value()) continue;
    for (const bool handwritten : {true, false}) {
      SCOPED_TRACE(one.name);
      LearnerOptions options = one.options;
      const auto shortened = NewLearner(options, handwritten);
      ASSERT_TRUE(shortened->Step({0, kBatch, kBatch, 3e-3, 5}).ok());
      ASSERT_TRUE(shortened->ShortenWindow(kSteps).ok());
      EXPECT_EQ(shortened->window(), kSteps);
      options.shape.window = kSteps;
      const auto fresh = NewLearner(options, handwritten);
      ASSERT_TRUE(
          fresh->Load(WithLastPositions(*shortened->Save(), shortened->layout(), kSteps)).ok());
      ASSERT_TRUE(shortened->ConsumeLoss().ok());
      for (int64_t step = 1; step < 5; ++step) {
        const StepInput input{step % 3 * kBatch, kBatch, kBatch, 3e-3, static_cast<uint64_t>(step)};
        ASSERT_TRUE(shortened->Step(input).ok());
        ASSERT_TRUE(fresh->Step(input).ok());
        const double wanted = fresh->ConsumeLoss()->mean();
        EXPECT_NEAR(shortened->ConsumeLoss()->mean(), wanted, 1e-5 * std::fabs(wanted)) << step;
      }
      const std::vector<int32_t> rows = {kFirst, kFirst + 9, kRows - 1};
      std::vector<float> a(rows.size() * static_cast<size_t>(options.shape.outputs)), b = a;
      ASSERT_TRUE(shortened->Predict(Weights::kLast, rows, absl::MakeSpan(a)).ok());
      ASSERT_TRUE(fresh->Predict(Weights::kLast, rows, absl::MakeSpan(b)).ok());
      for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << i;
      // Rows passed to Predict() keep their full history.
      EncodedRows passed = Data(options).rows;
      const auto later = static_cast<size_t>(kRows - (one.options.shape.window - 1 + 1));
      std::vector<float> c(later * static_cast<size_t>(options.shape.outputs));
      ASSERT_TRUE(shortened->Predict(Weights::kLast, passed, absl::MakeSpan(c)).ok());
      for (size_t k = 0; k < static_cast<size_t>(options.shape.outputs); ++k) {
        EXPECT_NEAR(c[c.size() - static_cast<size_t>(options.shape.outputs) + k],
                    a[a.size() - static_cast<size_t>(options.shape.outputs) + k], 1e-5);
      }
      EXPECT_FALSE(shortened->ShortenWindow(kSteps + 1).ok());
      EXPECT_FALSE(shortened->ShortenWindow(1).ok());
    }
  }
}

TEST(HandwrittenForwardTest, PredictionsAreThoseOfTheModel) {
  for (const Case& one : Cases()) {
    LearnerOptions options = one.options;
    const auto fast = NewLearner(options, true);
    options.paths.handwritten_forward = false;
    const auto plain = NewLearner(options, true);
    std::vector<int32_t> rows(static_cast<size_t>(kRows - kFirst));
    std::iota(rows.begin(), rows.end(), static_cast<int32_t>(kFirst));
    const size_t outputs = static_cast<size_t>(options.shape.outputs);
    std::vector<float> wanted(rows.size() * outputs), out(wanted.size());
    ASSERT_TRUE(plain->Predict(Weights::kLast, rows, absl::MakeSpan(wanted)).ok());
    ASSERT_TRUE(fast->Predict(Weights::kLast, rows, absl::MakeSpan(out)).ok());
    for (size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], wanted[i], 3e-6) << one.name;
    // A single row, and rows that are not resident.
    ASSERT_TRUE(fast->Predict(Weights::kBest, absl::MakeSpan(rows).subspan(3, 1),
                              absl::MakeSpan(out).first(outputs))
                    .ok());
    for (size_t i = 0; i < outputs; ++i) {
      EXPECT_NEAR(out[i], wanted[3 * outputs + i], 3e-6) << one.name;
    }
    const EncodedRows passed = Data(options).rows;
    const size_t context = static_cast<size_t>(options.shape.window - 1 + options.horizon);
    std::vector<float> all((kRows - context) * outputs);
    ASSERT_TRUE(fast->Predict(Weights::kLast, passed, absl::MakeSpan(all)).ok());
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_NEAR(all[(kFirst - context) * outputs + i], wanted[i], 3e-6) << one.name;
    }
  }
}

TEST(HandwrittenForwardTest, InHalfPrecisionPredictionsStayNearThoseOfTheModel) {
  for (const Case& one : Cases()) {
    if (!one.options.model.mlp.has_value()) continue;
    const auto learner = NewLearner(one.options, true);
    EXPECT_EQ(learner->answers_in(), Precision::kFp32);
    std::vector<int32_t> rows(static_cast<size_t>(kRows - kFirst));
    std::iota(rows.begin(), rows.end(), static_cast<int32_t>(kFirst));
    std::vector<float> wanted(rows.size() * static_cast<size_t>(one.options.shape.outputs));
    std::vector<float> out(wanted.size()), again(wanted.size());
    ASSERT_TRUE(learner->Predict(Weights::kLast, rows, absl::MakeSpan(wanted)).ok());
    learner->AnswerIn(Precision::kBf16);
    ASSERT_TRUE(learner->Predict(Weights::kLast, rows, absl::MakeSpan(out)).ok());
    double largest = 0, distance = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      largest = std::max<double>(largest, std::abs(wanted[i]));
      distance = std::max<double>(distance, std::abs(wanted[i] - out[i]));
    }
    EXPECT_LT(distance, 0.03 * largest) << one.name;
    EXPECT_EQ(distance > 0, PackedHalfLayer::Available()) << one.name;
    learner->AnswerIn(Precision::kFp32);
    ASSERT_TRUE(learner->Predict(Weights::kLast, rows, absl::MakeSpan(again)).ok());
    EXPECT_EQ(again, wanted) << one.name;
  }
}

TEST(Bf16Test, ValuesAreRoundedToTheNearestEven) {
  const auto round_trip = [](float value) {
    Bf16 half;
    Store(half, value);
    return Load(half);
  };
  EXPECT_EQ(round_trip(1.0f), 1.0f);
  EXPECT_EQ(round_trip(1.00390625f), 1.0f);       // halfway, down to even
  EXPECT_EQ(round_trip(1.01171875f), 1.015625f);  // halfway, up to even
  EXPECT_EQ(round_trip(-3.14159274f), -3.140625f);
  EXPECT_TRUE(std::isinf(round_trip(3.4e38f)));
  EXPECT_TRUE(std::isnan(round_trip(NAN)));
}

}  // namespace
}  // namespace traind
