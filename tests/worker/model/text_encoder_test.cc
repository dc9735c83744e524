// The text encoder against PyTorch, and packed attention against padded attention.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/worker/model/golden.h"
#include "tests/worker/model/model_of.h"
#include "worker/data/media_source.h"
#include "worker/learner/learner.h"
#include "worker/learner/optimizer.h"
#include "worker/learner/rows_at_once.h"
#include "worker/model/networks/model.h"
#include "worker/model/networks/text_attention.h"
#include "worker/model/objective/objective_loss.h"

namespace traind {
namespace {

// The same as in tests/golden/text_golden.py.
constexpr int64_t kSteps = 20, kBatch = 8, kNumeric = 3, kVocabulary = 30, kLongest = 90;
constexpr double kLearningRate = 3e-3, kMaxNorm = 5;

struct Recorded {
  std::string name;
  bool disentangled = true;
  int64_t outputs = 1;
  bool columns = true, classes = false;
};

ModelSpec SmallEncoder(bool disentangled) {
  ModelSpec model = ModelOf("text", R"({"width":16,"feedforward":24,"dropout":0})");
  if (!disentangled) model.text->attention = "plain";
  return model;
}

// A network with its weights and optimizer, and the golden file's texts.
class Trained {
 public:
  Trained(const Golden& golden, const Recorded& run) : run_(run) {
    const ModelSpec spec = SmallEncoder(run.disentangled);
    ModelShape shape;
    shape.vocabulary = kVocabulary;
    shape.max_tokens = kLongest;
    shape.outputs = run.outputs;
    if (run.columns) {
      shape.numeric = kNumeric;
      shape.cardinalities = {6};
    }
    auto model = CreateModel(spec, shape, parameters_);
    EXPECT_TRUE(model.ok()) << model.status().ToString();
    model_ = *std::move(model);
    parameters_.Allocate(c10::kCPU);
    std::vector<float> weights;
    for (const ParameterInfo& parameter : parameters_.layout()) {
      const std::vector<float> values = golden.Floats(run.name + "." + parameter.name);
      EXPECT_EQ(static_cast<int64_t>(values.size()), parameter.size) << parameter.name;
      weights.insert(weights.end(), values.begin(), values.end());
    }
    parameters_.Unpack(weights, parameters_.flat());
    optimizer_.emplace(OptimizerSettings(), parameters_.flat(),
                       std::vector<OptimizerPart>{{0, parameters_.flat().numel()}}, /*fused=*/true);
    Objective objective;
    objective.loss = run.classes ? LossKind::kCrossEntropy : LossKind::kMse;
    objective_.emplace(objective, std::vector<double>(), std::vector<double>(), c10::kCPU);
    tokens_ = golden.Integers("in.tokens");
    ends_ = golden.Integers("in.ends");
    numeric_ = golden.Floats("in.numeric");
    codes_ = golden.Integers("in.codes");
    classes_ = golden.Integers("in.classes");
    values_ = golden.Floats("in.values");
  }

  bool SetRecompute(bool on) { return model_->SetRecompute(on); }

  at::Tensor Forward(int64_t step, bool training) {
    const auto first = static_cast<size_t>(step * kBatch);
    const int64_t begin = first == 0 ? 0 : ends_[first - 1];
    std::vector<int64_t> ends;
    for (size_t b = first; b < first + kBatch; ++b) ends.push_back(ends_[b] - begin);
    Inputs inputs;
    inputs.tokens = Copy(tokens_.data() + begin, {ends.back()}, at::kInt);
    inputs.ends = Copy(ends.data(), {kBatch}, at::kLong);
    if (run_.columns) {
      inputs.numeric = Copy(numeric_.data() + first * kNumeric, {kBatch, kNumeric}, at::kFloat);
      inputs.codes = Copy(codes_.data() + first, {kBatch, 1}, at::kInt);
    }
    return model_->Forward(parameters_.tensors(), inputs, training);
  }

  // Takes a step and returns the loss before it.
  double Step(int64_t step) {
    const at::Tensor gradient = at::zeros_like(parameters_.flat());
    const at::Tensor loss = LossOf(step);
    loss.backward();
    const at::NoGradGuard no_gradients;
    parameters_.MoveGradientsTo(gradient);
    optimizer_->Step(gradient, kLearningRate, kMaxNorm, std::nullopt);
    return loss.item<double>();
  }

  std::vector<float> Gradient(int64_t step) {
    const at::Tensor gradient = at::zeros_like(parameters_.flat());
    LossOf(step).backward();
    const at::NoGradGuard no_gradients;
    parameters_.MoveGradientsTo(gradient);
    return parameters_.Pack(gradient);
  }

 private:
  template <class T>
  static at::Tensor Copy(const T* data, at::IntArrayRef shape, at::ScalarType type) {
    return at::from_blob(const_cast<T*>(data), shape, type).clone();
  }

  at::Tensor LossOf(int64_t step) {
    const auto first = static_cast<size_t>(step * kBatch);
    at::Tensor wanted;
    if (run_.classes) {
      wanted = Copy(classes_.data() + first, {kBatch}, at::kInt).to(at::kLong);
    } else {
      wanted = Copy(values_.data() + 2 * first, {kBatch, 2}, at::kFloat).narrow(1, 0, run_.outputs);
    }
    return objective_->Loss(Forward(step, /*training=*/true), wanted, at::Reduction::Mean);
  }

  const Recorded run_;
  Parameters parameters_;
  std::unique_ptr<Model> model_;
  std::optional<Optimizer> optimizer_;
  std::optional<ObjectiveLoss> objective_;
  std::vector<int32_t> tokens_, ends_, codes_, classes_;
  std::vector<float> numeric_, values_;
};

const Recorded kPlain{"plain", false, 1, true, false};
const Recorded kDisentangled{"disentangled", true, 3, true, true};
const Recorded kTextAlone{"text_alone", true, 2, false, false};

void ExpectRun(const Recorded& run) {
  SetTorchThreads(1);  // at these sizes more threads would only wait for each other
  const Golden golden("text.safetensors");
  Trained trained(golden, run);
  {
    const at::NoGradGuard no_gradients;
    const at::Tensor first = trained.Forward(0, /*training=*/false).contiguous();
    const std::vector<float> wanted = golden.Floats("out." + run.name + ".first");
    ASSERT_EQ(first.numel(), static_cast<int64_t>(wanted.size()));
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_NEAR(first.const_data_ptr<float>()[i], wanted[i], 2e-5) << i;
    }
  }
  const std::vector<float> losses = golden.Floats("out." + run.name + ".losses");
  for (int64_t step = 0; step < kSteps; ++step) {
    const double wanted = losses[static_cast<size_t>(step)];
    EXPECT_NEAR(trained.Step(step), wanted, 1e-5 * wanted) << run.name << " step " << step;
  }
}

TEST(TextEncoderTest, LossesWithPlainAttentionAreThoseOfPyTorchStepByStep) { ExpectRun(kPlain); }

// The first outputs were computed by a loop over single scores.
TEST(TextEncoderTest, LossesWithDisentangledAttentionAreThoseOfPyTorchStepByStep) {
  ExpectRun(kDisentangled);
}

TEST(TextEncoderTest, ATextWithoutColumnsIsEnough) { ExpectRun(kTextAlone); }

// The golden file's texts.
class GoldenTexts final : public MediaSource {
 public:
  explicit GoldenTexts(const Golden& golden)
      : tokens_(golden.Integers("in.tokens")), ends_(golden.Integers("in.ends")) {}

  absl::Status Load(const MediaRequest& request, MediaBatch& out) const override {
    out = MediaBatch();
    for (const int32_t row : request.rows) {
      const int32_t begin = row == 0 ? 0 : ends_[static_cast<size_t>(row) - 1];
      out.tokens.insert(out.tokens.end(), tokens_.begin() + begin,
                        tokens_.begin() + ends_[static_cast<size_t>(row)]);
      out.ends.push_back(static_cast<int32_t>(out.tokens.size()));
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<int32_t> tokens_, ends_;
};

LearnerOptions OptionsOf(const Recorded& run) {
  LearnerOptions options;
  options.model = SmallEncoder(run.disentangled);
  options.shape.vocabulary = kVocabulary;
  options.shape.max_tokens = kLongest;
  options.shape.outputs = run.outputs;
  if (run.columns) {
    options.shape.numeric = kNumeric;
    options.shape.cardinalities = {6};
  }
  options.objective.loss = run.classes ? LossKind::kCrossEntropy : LossKind::kMse;
  return options;
}

std::unique_ptr<Learner> LearnerOf(const Golden& golden, const Recorded& run,
                                   const LearnerOptions& options) {
  LearnerData data;
  data.rows.rows = kSteps * kBatch;
  data.rows.media = std::make_shared<GoldenTexts>(golden);
  if (run.columns) {
    data.rows.numeric = golden.Floats("in.numeric");
    data.rows.codes = golden.Integers("in.codes");
  }
  data.classes = golden.Integers("in.classes");
  const std::vector<float> values = golden.Floats("in.values");  // [rows, 2]
  for (size_t i = 0; !run.classes && i < values.size(); ++i) {
    if (static_cast<int64_t>(i % 2) < run.outputs) data.values.push_back(values[i]);
  }
  SetTorchThreads(1);
  auto learner = Learner::Create(options, std::move(data));
  EXPECT_TRUE(learner.ok()) << learner.status().ToString();
  EXPECT_TRUE((*learner)->SetOrder(RowsFrom(0, kSteps * kBatch)).ok());
  LoadWeights(golden, **learner, run.name + ".");
  return *std::move(learner);
}

// A gang's last batch may be shorter than the gang.
TEST(TextLearnerTest, ARankWithoutTextsInTheLastBatchStepsAllTheSame) {
  const Golden golden("text.safetensors");
  for (const Recorded& run : {kPlain, kDisentangled, kTextAlone}) {
    for (const bool handwritten : {true, false}) {
      SCOPED_TRACE(run.name + (handwritten ? ", handwritten" : ", autograd"));
      LearnerOptions options = OptionsOf(run);
      options.paths.handwritten_backward = handwritten;
      const auto learner = LearnerOf(golden, run, options);
      const absl::Status stepped = learner->Step({0, 0, 1, kLearningRate, 1});
      EXPECT_TRUE(stepped.ok()) << stepped.ToString();
      EXPECT_EQ(learner->ConsumeLoss()->weight, 0);
    }
  }
}

TEST(TextLearnerTest, TheScoresOfAttentionLimitTheRowsThatArePredictedAtOnce) {
  ModelSpec model;
  plain::TextEncoderSpec& text = model.text.emplace();
  ModelShape shape;
  shape.vocabulary = 100;
  shape.max_tokens = 512;
  for (const bool gpu : {false, true}) {
    text.heads = 1;
    const int64_t with_one_head = RowsAtOnce(model, shape, gpu);
    text.heads = 12;
    const int64_t rows = RowsAtOnce(model, shape, gpu);
    EXPECT_LT(rows, with_one_head);
    const double score_bytes = 4.0 * 12 * 512 * 512 * static_cast<double>(rows);
    EXPECT_LE(score_bytes, gpu ? 1 << 29 : 1 << 27);
    EXPECT_GE(rows, 1);
  }
}

TEST(TextLearnerTest, LossesOfEitherPathAreThoseOfPyTorchStepByStep) {
  const Golden golden("text.safetensors");
  for (const Recorded& run : {kPlain, kDisentangled, kTextAlone}) {
    const std::vector<float> losses = golden.Floats("out." + run.name + ".losses");
    for (const bool handwritten : {true, false}) {
      for (const bool recompute : {false, true}) {
        SCOPED_TRACE(run.name + (handwritten ? ", handwritten" : ", autograd"));
        LearnerOptions options = OptionsOf(run);
        options.paths.handwritten_backward = handwritten;
        const auto learner = LearnerOf(golden, run, options);
        EXPECT_TRUE(learner->SetRecompute(recompute) || !recompute);
        for (int64_t step = 0; step < kSteps; ++step) {
          const absl::Status stepped =
              learner->Step({step * kBatch, kBatch, kBatch, kLearningRate, 1});
          ASSERT_TRUE(stepped.ok()) << stepped.ToString();
          const double wanted = losses[static_cast<size_t>(step)];
          EXPECT_NEAR(learner->ConsumeLoss()->mean(), wanted, 1e-5 * wanted) << "step " << step;
        }
      }
    }
  }
}

// Returns the losses of some steps, each in micro-batches of half a batch.
std::vector<double> LossesOf(const Golden& golden, const Recorded& run,
                             const LearnerOptions& options) {
  const auto learner = LearnerOf(golden, run, options);
  std::vector<double> losses;
  for (int64_t step = 0; step < 6; ++step) {
    for (const bool last : {false, true}) {
      StepInput input;
      input.begin = step * kBatch + (last ? kBatch / 2 : 0);
      input.rows = kBatch / 2;
      input.gang_rows = kBatch;
      input.learning_rate = kLearningRate;
      input.dropout_seed = static_cast<uint64_t>(2 * step + last);
      input.last = last;
      EXPECT_TRUE(learner->Step(input).ok());
    }
    losses.push_back(learner->ConsumeLoss()->mean());
  }
  return losses;
}

TEST(TextLearnerTest, WithDropoutAndAccumulationEitherPathIsTheSame) {
  const Golden golden("text.safetensors");
  for (const Recorded& run : {kPlain, kDisentangled}) {
    LearnerOptions options = OptionsOf(run);
    options.model.text->dropout = 0.3;
    const std::vector<double> handwritten = LossesOf(golden, run, options);
    options.paths.handwritten_backward = false;
    const std::vector<double> autograd = LossesOf(golden, run, options);
    options.model.text->dropout = 0;
    const std::vector<double> without = LossesOf(golden, run, options);
    for (size_t i = 0; i < handwritten.size(); ++i) {
      EXPECT_NEAR(handwritten[i], autograd[i], 1e-5 * autograd[i]) << run.name << " step " << i;
      EXPECT_GT(std::fabs(handwritten[i] - without[i]), 1e-4 * without[i]);
    }
  }
}

TEST(TextLearnerTest, Bf16LossesStayNearThoseOfFloat32) {
  const Golden golden("text.safetensors");
  for (const Recorded& run : {kPlain, kDisentangled}) {
    LearnerOptions options = OptionsOf(run);
    const std::vector<double> whole = LossesOf(golden, run, options);
    options.precision = Precision::kBf16;
    for (const bool handwritten : {true, false}) {
      options.paths.handwritten_backward = handwritten;
      const std::vector<double> half = LossesOf(golden, run, options);
      for (size_t i = 0; i < whole.size(); ++i) {
        EXPECT_NEAR(half[i], whole[i], 0.03 * whole[i]) << run.name << " step " << i;
        EXPECT_NE(half[i], whole[i]);
      }
    }
  }
}

TEST(TextEncoderTest, GradientsStayUnderActivationCheckpointing) {
  const Golden golden("text.safetensors");
  for (const Recorded& run : {kPlain, kDisentangled}) {
    Trained trained(golden, run);
    const std::vector<float> kept = trained.Gradient(0);
    ASSERT_TRUE(trained.SetRecompute(true));
    const std::vector<float> again = trained.Gradient(0);
    ASSERT_EQ(kept.size(), again.size());
    for (size_t i = 0; i < kept.size(); ++i) ASSERT_NEAR(kept[i], again[i], 1e-6) << i;
  }
}

TEST(RelativeBucketsTest, NearDistancesHaveABucketEachAndTheFarthestTheLast) {
  const RelativeBuckets buckets(32, 512);
  EXPECT_EQ(buckets.count(), 64);
  for (int64_t distance = -16; distance <= 16; ++distance) {
    EXPECT_EQ(buckets.BucketOf(distance), distance + 32);
  }
  for (int64_t distance = 17; distance < 512; ++distance) {
    EXPECT_GE(buckets.BucketOf(distance), buckets.BucketOf(distance - 1));
    EXPECT_EQ(buckets.BucketOf(-distance), 64 - buckets.BucketOf(distance)) << distance;
  }
  EXPECT_EQ(buckets.BucketOf(511), 63);
  EXPECT_EQ(buckets.Row(3)[0], buckets.BucketOf(3));
  EXPECT_EQ(buckets.Row(3)[5], buckets.BucketOf(-2));
}

// Compares outputs and gradients for samples of very different lengths.
void ExpectPackedIsPadded(bool disentangled, double dropout, int64_t window = 0) {
  constexpr int64_t kWidth = 24, kHeads = 3;
  const RelativeBuckets buckets(8, 60);
  TextAttentionOptions options;
  options.ends = {1, 41, 43, 103, 108};
  options.heads = kHeads;
  options.buckets = disentangled ? &buckets : nullptr;
  options.dropout = dropout;
  options.window = window;
  options.seed = 5;
  const auto leaf = [](at::IntArrayRef shape) { return at::randn(shape).set_requires_grad(true); };
  at::Tensor rows = leaf({options.ends.back(), 3 * kWidth}), relative;
  if (disentangled) relative = leaf({buckets.count(), 2 * kWidth});
  const at::Tensor asked = at::randn({options.ends.back(), kWidth});
  std::vector<at::Tensor> found;
  for (const bool packed : {true, false}) {
    const at::Tensor mixed =
        packed ? TextAttention(rows, relative, options) : PaddedAttention(rows, relative, options);
    mixed.mul(asked).sum().backward();
    found.push_back(mixed.detach());
    for (at::Tensor* at : {&rows, &relative}) {
      if (!at->defined()) continue;
      found.push_back(at->grad().clone());
      at->mutable_grad().reset();
    }
  }
  const size_t half = found.size() / 2;
  for (size_t i = 0; i < half; ++i) {
    EXPECT_LT(found[i].sub(found[half + i]).abs().max().item<double>(), 2e-5) << i;
  }
}

TEST(PackedAttentionTest, PackedAttentionEqualsPaddedAttention) {
  ExpectPackedIsPadded(/*disentangled=*/false, 0);
  ExpectPackedIsPadded(/*disentangled=*/true, 0);
  ExpectPackedIsPadded(/*disentangled=*/false, 0, /*window=*/4);
  ExpectPackedIsPadded(/*disentangled=*/true, 0, /*window=*/1);
}

TEST(PaddedAttentionTest, PlacesMadeForAllLayersServeEachOfThem) {
  const RelativeBuckets buckets(8, 60);
  const at::Tensor rows = at::randn({12, 36}), relative = at::randn({buckets.count(), 24});
  for (const std::vector<int64_t>& ends : {std::vector<int64_t>{4, 5, 12}, {6, 12}}) {
    for (const bool disentangled : {false, true}) {
      TextAttentionOptions options =
          AttentionOver(ends, 3, disentangled ? &buckets : nullptr, at::kCPU);
      EXPECT_EQ(options.places, nullptr);  // the CPU has a pass without padding
      const at::Tensor by = disentangled ? relative : at::Tensor();
      const at::Tensor wanted = PaddedAttention(rows, by, options);
      options.places = PadPlaces(ends, options.buckets, at::kCPU);
      EXPECT_EQ(options.places->padding.defined(), ends.size() == 3);
      EXPECT_TRUE(PaddedAttention(rows, by, options).equal(wanted));
    }
  }
}

TEST(PaddedAttentionTest, WithoutSamplesThereAreNoTokens) {
  const at::Tensor rows = at::randn({0, 36}).set_requires_grad(true);
  const at::Tensor mixed =
      PaddedAttention(rows, at::Tensor(), AttentionOver({}, 3, nullptr, at::kCPU));
  EXPECT_EQ(mixed.sizes(), at::IntArrayRef({0, 12}));
  mixed.sum().backward();
  EXPECT_EQ(rows.grad().sizes(), rows.sizes());
}

// A pass that is made again (activation checkpointing) drops the same.
TEST(PaddedAttentionTest, DropoutFollowsFromTheSeed) {
  TextAttentionOptions options = AttentionOver({5, 12}, 3, nullptr, at::kCPU);
  options.dropout = 0.3;
  const at::Tensor rows = at::randn({12, 36});
  const auto drawn = [&](uint64_t seed) {
    options.seed = seed;
    return PaddedAttention(rows, at::Tensor(), options);
  };
  const at::Tensor first = drawn(4);
  EXPECT_TRUE(first.isfinite().all().item<bool>());
  EXPECT_FALSE(drawn(5).equal(first));
  EXPECT_TRUE(drawn(4).equal(first));
}

TEST(PackedAttentionTest, ATokenDoesNotSeeBeyondItsWindow) {
  constexpr int64_t kTokens = 20, kWindow = 3, kWidth = 8;
  TextAttentionOptions options;
  options.ends = {kTokens};
  options.heads = 2;
  options.window = kWindow;
  at::Tensor rows = at::randn({kTokens, 3 * kWidth});
  const auto last = [&](const at::Tensor& mixed) { return mixed.select(0, kTokens - 1).clone(); };
  const at::Tensor before = last(TextAttention(rows, at::Tensor(), options));
  rows.narrow(0, 0, kTokens - 1 - kWindow).mul_(-2);
  EXPECT_TRUE(before.equal(last(TextAttention(rows, at::Tensor(), options))));
  rows.narrow(0, kTokens - 1 - kWindow, 1).mul_(-2);
  EXPECT_FALSE(before.equal(last(TextAttention(rows, at::Tensor(), options))));
}

// Products of bf16 numbers are rounded to bf16 once. Scores, and the gradients of positions that
// many pairs of tokens share, are sums of such numbers, and add up in float32: in bf16 a sum of so
// many would stop growing at 256 times its terms.
TEST(PackedAttentionTest, InHalfPrecisionSumsAreMadeInFloat32) {
  constexpr int64_t kTokens = 600, kWidth = 16;
  const RelativeBuckets buckets(4, kTokens);
  TextAttentionOptions options;
  options.ends = {kTokens};
  options.heads = 1;
  options.buckets = &buckets;
  const auto drawn = [](at::IntArrayRef shape) {
    return at::randn(shape).mul(0.3).to(at::kBFloat16).to(at::kFloat);
  };
  const at::Tensor rows = drawn({kTokens, 3 * kWidth}),
                   relative = drawn({buckets.count(), 2 * kWidth});
  const at::Tensor asked = drawn({kTokens, kWidth}).abs();
  std::vector<at::Tensor> mixed, gradients;
  for (const at::ScalarType type : {at::kDouble, at::kBFloat16}) {
    const at::Tensor own = rows.to(type);
    const at::Tensor leaf = relative.to(type).set_requires_grad(true);
    const at::Tensor out = PaddedAttention(own, leaf, options);
    out.to(at::kFloat).mul(asked).sum().backward();
    mixed.push_back(out.detach().to(at::kDouble));
    gradients.push_back(leaf.grad().to(at::kDouble));
  }
  for (const auto& of : {mixed, gradients}) {
    EXPECT_LT(of[0].sub(of[1]).norm().item<double>(), 0.02 * of[0].norm().item<double>());
  }
}

// With dropout the two passes draw different masks, so the gradient is checked
// by finite differences.
TEST(PackedAttentionTest, DropoutOfTheProbabilitiesIsDifferentiated) {
  const RelativeBuckets buckets(4, 12);
  TextAttentionOptions options;
  options.ends = {5, 12};
  options.heads = 2;
  options.buckets = &buckets;
  options.dropout = 0.4;
  options.seed = 9;
  at::Tensor rows = at::randn({12, 12}).set_requires_grad(true);
  at::Tensor relative = at::randn({8, 8}).set_requires_grad(true);
  const at::Tensor asked = at::randn({12, 4});
  const auto value = [&] { return TextAttention(rows, relative, options).mul(asked).sum(); };
  value().backward();
  const at::NoGradGuard no_gradients;
  for (at::Tensor* leaf : {&rows, &relative}) {
    float* data = leaf->mutable_data_ptr<float>();
    for (int64_t i = 0; i < leaf->numel(); i += 7) {
      constexpr float kBy = 1e-2f;
      const float before = data[i];
      data[i] = before + kBy;
      const double up = value().item<double>();
      data[i] = before - kBy;
      const double down = value().item<double>();
      data[i] = before;
      EXPECT_NEAR(leaf->grad().const_data_ptr<float>()[i], (up - down) / (2 * kBy), 5e-3) << i;
    }
  }
}

}  // namespace
}  // namespace traind
