// The residual CNN over images against PyTorch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/worker/model/golden.h"
#include "tests/worker/model/model_of.h"
#include "worker/data/media_source.h"
#include "worker/learner/learner.h"
#include "worker/learner/mixup.h"

namespace traind {
namespace {

// The same as in tests/golden/cnn_golden.py.
constexpr int64_t kSteps = 20, kBatch = 8, kSize = 9, kNumeric = 2, kRows = kSteps * kBatch;
constexpr double kLearningRate = 1e-3;

// The first channels of images in memory, [rows, size, size, 3].
class Images final : public MediaSource {
 public:
  Images(std::vector<float> values, int64_t channels)
      : values_(std::move(values)), channels_(channels) {}

  absl::Status Load(const MediaRequest& request, MediaBatch& out) const override {
    out.shape = {static_cast<int64_t>(request.rows.size()), kSize, kSize, channels_};
    out.values.clear();
    for (const int32_t row : request.rows) {
      const float* image = values_.data() + row * kSize * kSize * 3;
      for (int64_t i = 0; i < kSize * kSize; ++i) {
        out.values.insert(out.values.end(), image + i * 3, image + i * 3 + channels_);
      }
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<float> values_;
  const int64_t channels_;
};

LearnerOptions Colour() {
  LearnerOptions options;
  options.model = ModelOf("cnn", R"({"width":8,"blocks":[1,2,1]})");
  options.shape.image = {3, kSize, kSize};
  options.shape.numeric = kNumeric;
  options.shape.cardinalities = {5};
  options.shape.outputs = 3;
  options.objective.loss = LossKind::kCrossEntropy;
  return options;
}

LearnerOptions Grey() {
  LearnerOptions options = Colour();
  options.model.cnn->width = 6;
  options.model.cnn->blocks = {1, 1};
  options.shape.image = {1, kSize, kSize};
  options.shape.numeric = 0;
  options.shape.cardinalities.clear();
  options.shape.outputs = 2;
  options.objective.loss = LossKind::kMse;
  return options;
}

std::unique_ptr<Learner> NewLearner(const Golden& golden, const LearnerOptions& options) {
  LearnerData data;
  data.rows.rows = kRows;
  data.rows.media =
      std::make_shared<Images>(golden.Floats("in.images"), options.shape.image.front());
  if (options.shape.numeric > 0) data.rows.numeric = golden.Floats("in.numeric");
  if (!options.shape.cardinalities.empty()) data.rows.codes = golden.Integers("in.codes");
  data.classes = golden.Integers("in.classes");
  data.values = golden.Floats("in.values");
  SetTorchThreads(1);
  auto learner = Learner::Create(options, std::move(data));
  EXPECT_TRUE(learner.ok()) << learner.status().ToString();
  EXPECT_TRUE((*learner)->SetOrder(RowsFrom(0, kRows)).ok());
  return *std::move(learner);
}

void ExpectRun(const std::string& run, LearnerOptions options, bool loops) {
  SCOPED_TRACE(loops ? "loops" : "operators");
  options.paths.handwritten_backward = loops;
  const Golden golden("cnn.safetensors");
  const std::vector<float> losses = golden.Floats("out." + run + ".losses");
  const auto learner = NewLearner(golden, options);
  LoadWeights(golden, *learner, run + ".");
  for (int64_t step = 0; step < kSteps; ++step) {
    const absl::Status stepped = learner->Step({step * kBatch, kBatch, kBatch, kLearningRate, 1});
    ASSERT_TRUE(stepped.ok()) << stepped.ToString();
    const double wanted = losses[static_cast<size_t>(step)];
    EXPECT_NEAR(learner->ConsumeLoss()->mean(), wanted, 1e-5 * wanted) << "step " << step;
  }
  const std::vector<float> weights = learner->Save()->slots[kWeightsSlot];
  size_t begin = 0, statistics = 0;
  for (const ParameterInfo& parameter : learner->layout()) {
    if (parameter.name.find(".running_") != std::string::npos) {
      const std::vector<float> wanted = golden.Floats("out." + run + "." + parameter.name);
      for (size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_NEAR(weights[begin + i], wanted[i], 1e-5 * (1 + std::abs(wanted[i])))
            << parameter.name << " " << i;
        ++statistics;
      }
    }
    begin += static_cast<size_t>(parameter.size);
  }
  EXPECT_GT(statistics, 0u);
  const std::vector<float> predictions = golden.Floats("out." + run + ".predictions");
  std::vector<float> out(predictions.size());
  ASSERT_TRUE(learner->Predict(Weights::kLast, RowsFrom(0, kBatch), absl::MakeSpan(out)).ok());
  for (size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], predictions[i], 5e-5) << i;
}

TEST(CnnTest, LossesAndStatisticsOfClassesAreThoseOfPyTorchStepByStep) {
  ExpectRun("colour", Colour(), true);
  ExpectRun("colour", Colour(), false);
}

TEST(CnnTest, LossesAndStatisticsOfValuesAreThoseOfPyTorchStepByStep) {
  ExpectRun("grey", Grey(), true);
  ExpectRun("grey", Grey(), false);
}

TEST(CnnTest, Bf16LossesStayNearThoseOfFloat32) {
  const Golden golden("cnn.safetensors");
  const auto whole = NewLearner(golden, Colour());
  LearnerOptions options = Colour();
  options.precision = Precision::kBf16;
  const auto half = NewLearner(golden, options);
  for (int64_t step = 0; step < 5; ++step) {
    ASSERT_TRUE(whole->Step({step * kBatch, kBatch, kBatch, kLearningRate, 1}).ok());
    const absl::Status stepped = half->Step({step * kBatch, kBatch, kBatch, kLearningRate, 1});
    ASSERT_TRUE(stepped.ok()) << stepped.ToString();
    const double wanted = whole->ConsumeLoss()->mean(), loss = half->ConsumeLoss()->mean();
    EXPECT_NEAR(loss, wanted, 0.05 * wanted) << "step " << step;
    EXPECT_NE(loss, wanted);
  }
}

// Returns the loss of the first step with these options, from the golden weights.
double FirstLoss(const Golden& golden, const LearnerOptions& options, uint64_t seed) {
  const auto learner = NewLearner(golden, options);
  LoadWeights(golden, *learner, "colour.");
  EXPECT_TRUE(learner->Step({0, kBatch, kBatch, 0, seed}).ok());
  return learner->ConsumeLoss()->mean();
}

TEST(CnnTest, AMixtureIsDrawnFromTheSeedAndLearntAsOne) {
  const Golden golden("cnn.safetensors");
  LearnerOptions options = Colour();
  const double plain = FirstLoss(golden, options, 1);
  options.mixup = 1;
  const double mixed = FirstLoss(golden, options, 1);
  EXPECT_NE(mixed, plain);
  EXPECT_EQ(mixed, FirstLoss(golden, options, 1));
  EXPECT_NE(mixed, FirstLoss(golden, options, 2));
  double sum = 0, most = 0, least = 1;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const double share = MixupShare(1, seed);
    sum += share;
    most = std::max(most, share);
    least = std::min(least, share);
  }
  // For Beta(1, 1) the larger share is uniform in 0.5-1.
  EXPECT_NEAR(sum / 2000, 0.75, 0.01);
  EXPECT_GT(most, 0.99);
  EXPECT_LT(least, 0.51);
  EXPECT_GE(least, 0.5);
}

TEST(CnnTest, ARectangleOfAnotherImageIsDrawnFromTheSeedAndLearntByItsShare) {
  const Golden golden("cnn.safetensors");
  LearnerOptions options = Colour();
  const double plain = FirstLoss(golden, options, 1);
  options.cutmix = 1;
  const double cut = FirstLoss(golden, options, 1);
  EXPECT_NE(cut, plain);
  EXPECT_EQ(cut, FirstLoss(golden, options, 1));
  EXPECT_NE(cut, FirstLoss(golden, options, 2));
  // With mixup beside it each batch gets one of the two.
  options.mixup = 1;
  int cuts = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) cuts += TossForCut(seed);
  EXPECT_GT(cuts, 70);
  EXPECT_LT(cuts, 130);
  for (const uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    LearnerOptions one = options;
    (TossForCut(seed) ? one.mixup : one.cutmix) = 0;
    EXPECT_EQ(FirstLoss(golden, options, seed), FirstLoss(golden, one, seed)) << seed;
  }
}

TEST(CnnTest, ACutTakesItsRectangleFromTheImageOnTheOtherSideOfTheBatch) {
  constexpr int64_t kSide = 16;
  double sum = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const CutBox box = DrawCut(1, seed, kSide, kSide);
    ASSERT_GE(box.top, 0);
    ASSERT_GE(box.left, 0);
    ASSERT_LE(box.top + box.height, kSide);
    ASSERT_LE(box.left + box.width, kSide);
    ASSERT_EQ(box.share, 1 - static_cast<double>(box.height * box.width) / (kSide * kSide));
    ASSERT_GE(box.share, 0.5);
    sum += box.share;
  }
  EXPECT_GT(sum / 1000, 0.75);
  EXPECT_LT(sum / 1000, 0.92);
  CutBox box;
  box.top = 2;
  box.height = 3;
  box.left = 1;
  box.width = 4;
  const at::Tensor images = at::randn({3, 2, kSide, kSide});
  const at::Tensor mixed = CutFromOthers(images, box);
  const at::Tensor from_other = mixed.eq(images.flip({0})), own = mixed.eq(images);
  EXPECT_TRUE(from_other.narrow(2, 2, 3).narrow(3, 1, 4).all().item<bool>());
  EXPECT_TRUE(own.narrow(2, 5, kSide - 5).all().item<bool>());
  EXPECT_EQ(own.select(0, 0).sum().item<int64_t>(), 2 * (kSide * kSide - 12));
}

TEST(CnnTest, MirroredAnswersAreTheSameForAnImageAndItsMirrorImage) {
  const Golden golden("cnn.safetensors");
  LearnerOptions options = Grey();
  const auto answers = [&](bool mirror, bool flip) {
    options.model.cnn->mirror = mirror;
    const auto learner = NewLearner(golden, options);
    LoadWeights(golden, *learner, "grey.");
    std::vector<float> images = golden.Floats("in.images");
    for (float* line = images.data(); flip && line < images.data() + images.size();
         line += kSize * 3) {
      for (int64_t i = 0; i < kSize / 2; ++i) {
        std::swap_ranges(line + i * 3, line + i * 3 + 3, line + (kSize - 1 - i) * 3);
      }
    }
    EncodedRows rows;
    rows.rows = kBatch;
    rows.media = std::make_shared<Images>(images, 1);
    std::vector<float> out(kBatch * 2);
    EXPECT_TRUE(learner->Predict(Weights::kLast, rows, absl::MakeSpan(out)).ok());
    return out;
  };
  const std::vector<float> once = answers(true, false), flipped = answers(true, true);
  const std::vector<float> plain = answers(false, false), other = answers(false, true);
  for (size_t i = 0; i < once.size(); ++i) {
    EXPECT_NEAR(once[i], flipped[i], 1e-5) << i;
    EXPECT_NEAR(once[i], (plain[i] + other[i]) / 2, 1e-5) << i;
  }
  EXPECT_NE(plain, other);
}

TEST(CnnTest, AStepWithoutRowsLeavesTheStatisticsAlone) {
  const Golden golden("cnn.safetensors");
  const auto learner = NewLearner(golden, Colour());
  ASSERT_TRUE(learner->Step({0, kBatch, kBatch, kLearningRate, 1}).ok());
  const absl::Status empty = learner->Step({kBatch, 0, kBatch, 0, 1});
  ASSERT_TRUE(empty.ok()) << empty.ToString();
  for (const float weight : learner->Save()->slots[kWeightsSlot]) {
    ASSERT_TRUE(std::isfinite(weight));
  }
}

}  // namespace
}  // namespace traind
