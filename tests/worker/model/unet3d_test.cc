// The U-Net against PyTorch, step by step (tests/golden/unet3d_golden.py and
// unet3d_classes_golden.py).
#include <absl/types/span.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/worker/model/golden.h"
#include "tests/worker/model/model_of.h"
#include "worker/data/media_source.h"

namespace traind {
namespace {

// The same as in tests/golden/unet3d_golden.py.
constexpr int64_t kSteps = 20, kBatch = 2, kVoxels = 8 * 8 * 12;
constexpr double kLearningRate = 1e-3;

// The golden patches, with their first `channels` channels.
class GoldenPatches final : public MediaSource {
 public:
  GoldenPatches(const Golden& golden, int64_t channels)
      : values_(golden.Floats("in.volumes")),
        masks_(golden.Floats("in.masks")),
        channels_(channels) {}

  absl::Status Load(const MediaRequest& request, MediaBatch& out) const override {
    const auto count = static_cast<int64_t>(request.rows.size());
    out.shape = {count, 8, 8, 12, channels_};
    out.target_shape = {count, 1, 8, 8, 12};
    out.values.clear();
    out.target.clear();
    for (const int32_t row : request.rows) {
      for (int64_t i = row * kVoxels; i < (row + 1) * kVoxels; ++i) {
        for (int64_t c = 0; c < channels_; ++c) {
          out.values.push_back(values_[static_cast<size_t>(i * 2 + c)]);
        }
        out.target.push_back(masks_[static_cast<size_t>(i)]);
      }
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<float> values_, masks_;  // [rows, D, H, W, 2], [rows, D, H, W]
  const int64_t channels_;
};

struct Case {
  std::string name;
  int64_t channels, base, levels;
  int64_t classes = 1;

  std::string file() const {
    return classes == 1 ? "unet3d.safetensors" : "unet3d_classes.safetensors";
  }
};

std::unique_ptr<Learner> GoldenLearner(const Golden& golden, const Case& run) {
  LearnerOptions options;
  options.model = ModelOf("unet3d");
  options.model.unet3d->base = run.base;
  options.model.unet3d->levels = run.levels;
  options.shape.image = {run.channels, 8, 8, 12};
  options.shape.outputs = run.classes == 1 ? 1 : run.classes + 1;
  options.objective.loss = run.classes == 1 ? LossKind::kDiceBce : LossKind::kDiceCe;
  LearnerData data;
  data.rows.rows = kSteps * kBatch;
  data.rows.media = std::make_shared<GoldenPatches>(golden, run.channels);
  data.values.assign(static_cast<size_t>(kSteps * kBatch * options.shape.outputs), 0.0f);
  auto learner = Learner::Create(options, std::move(data));
  EXPECT_TRUE(learner.ok()) << learner.status().ToString();
  LoadWeights(golden, **learner, run.name + ".");
  EXPECT_TRUE((*learner)->SetOrder(RowsFrom(0, kSteps * kBatch)).ok());
  return *std::move(learner);
}

class Unet3dTest : public testing::TestWithParam<Case> {};

TEST_P(Unet3dTest, LossesAndRunningStatisticsAreThoseOfPyTorchStepByStep) {
  const Case& run = GetParam();
  const Golden golden(run.file());
  const auto learner = GoldenLearner(golden, run);
  const std::vector<float> expected = golden.Floats("out." + run.name + ".losses");
  for (int64_t step = 0; step < kSteps; ++step) {
    const absl::Status stepped = learner->Step({step * kBatch, kBatch, kBatch, kLearningRate, 1});
    ASSERT_TRUE(stepped.ok()) << stepped.ToString();
    const auto loss = learner->ConsumeLoss();
    ASSERT_TRUE(loss.ok());
    const double wanted = expected[static_cast<size_t>(step)];
    EXPECT_NEAR(loss->mean(), wanted, 1e-5 * wanted) << "step " << step;
  }
  const auto state = learner->Save();
  ASSERT_TRUE(state.ok());
  const std::vector<float>& weights = state->slots.at(kWeightsSlot);
  size_t begin = 0, buffers = 0;
  for (const ParameterInfo& parameter : learner->layout()) {
    if (parameter.name.find("running_") != std::string::npos) {
      const std::vector<float> wanted = golden.Floats("out." + run.name + "." + parameter.name);
      for (size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_NEAR(weights[begin + i], wanted[i], 1e-5 * (1 + std::abs(wanted[i])))
            << parameter.name;
      }
      ++buffers;
    }
    begin += static_cast<size_t>(parameter.size);
  }
  EXPECT_EQ(buffers, 4 * static_cast<size_t>(2 * run.levels - 1));
}

TEST_P(Unet3dTest, ProbabilitiesOfWholePatchesAreThoseOfPyTorch) {
  const Case& run = GetParam();
  const Golden golden(run.file());
  const auto learner = GoldenLearner(golden, run);
  for (int64_t step = 0; step < kSteps; ++step) {
    ASSERT_TRUE(learner->Step({step * kBatch, kBatch, kBatch, kLearningRate, 1}).ok());
  }
  // Each patch is a row rather than a volume here, so that all its voxels are answered.
  const std::vector<float> wanted = golden.Floats("out." + run.name + ".probabilities");
  std::vector<float> out(wanted.size());
  ASSERT_TRUE(learner->Predict(Weights::kLast, RowsFrom(0, kBatch), absl::MakeSpan(out)).ok());
  for (size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], wanted[i], 2e-5) << i;
}

TEST_P(Unet3dTest, ARankWithoutPatchesInTheLastBatchStepsAllTheSame) {
  const auto learner = GoldenLearner(Golden(GetParam().file()), GetParam());
  const absl::Status stepped = learner->Step({0, 0, 1, kLearningRate, 1});
  EXPECT_TRUE(stepped.ok()) << stepped.ToString();
  const auto saved = learner->Save();
  ASSERT_TRUE(saved.ok()) << saved.status();
  for (const float weight : saved->slots.at(kWeightsSlot)) {
    ASSERT_TRUE(std::isfinite(weight));
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, Unet3dTest,
                         testing::Values(Case{"three_levels", 1, 4, 3}, Case{"channels", 2, 3, 2},
                                         Case{"three_classes", 1, 4, 2, 3}),
                         [](const auto& run) { return run.param.name; });

}  // namespace
}  // namespace traind
