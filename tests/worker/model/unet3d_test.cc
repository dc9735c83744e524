// The U-Net against PyTorch, step by step (tests/golden/unet3d_golden.py, unet3d_classes_golden.py,
// unet3d_instance_golden.py and unet2d_golden.py).
#include <absl/types/span.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
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

// The place of a voxel in the patch that is mirrored along axes.
int64_t Mirrored(int64_t voxel, const std::array<bool, 3>& mirror) {
  const int64_t z = voxel / 96, y = voxel / 12 % 8, x = voxel % 12;
  return ((mirror[0] ? 7 - z : z) * 8 + (mirror[1] ? 7 - y : y)) * 12 + (mirror[2] ? 11 - x : x);
}

// The golden patches, with their first `channels` channels.
class GoldenPatches final : public MediaSource {
 public:
  // mirror: the axes along which they are mirrored.
  GoldenPatches(const Golden& golden, const std::vector<int64_t>& shape,
                std::array<bool, 3> mirror = {})
      : values_(golden.Floats("in.volumes")),
        masks_(golden.Floats("in.masks")),
        shape_(shape),
        mirror_(mirror) {}

  absl::Status Load(const MediaRequest& request, MediaBatch& out) const override {
    const auto count = static_cast<int64_t>(request.rows.size());
    const int64_t channels = shape_[0];
    out.shape = {count, shape_[1], shape_[2], shape_[3], channels};
    out.target_shape = {count, 1, shape_[1], shape_[2], shape_[3]};
    out.values.clear();
    out.target.clear();
    for (const int32_t row : request.rows) {
      for (int64_t voxel = 0; voxel < kVoxels; ++voxel) {
        const int64_t i = row * kVoxels + Mirrored(voxel, mirror_);
        for (int64_t c = 0; c < channels; ++c) {
          out.values.push_back(values_[static_cast<size_t>(i * 2 + c)]);
        }
        out.target.push_back(masks_[static_cast<size_t>(i)]);
      }
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<float> values_, masks_;  // [rows, D, H, W, 2], [rows, D, H, W]
  const std::vector<int64_t> shape_;         // channels, D, H, W
  const std::array<bool, 3> mirror_;
};

struct Case {
  std::string name;
  int64_t channels, base, levels;
  int64_t classes = 1;
  bool instance = false, deep = false;
  bool flat = false;  // patches are one slice deep

  std::vector<int64_t> shape() const {  // channels, D, H, W
    if (flat) return {channels, 1, 24, 32};
    return {channels, 8, 8, 12};
  }
  std::string file() const {
    if (flat) return "unet2d.safetensors";
    if (instance) return "unet3d_instance.safetensors";
    return classes == 1 ? "unet3d.safetensors" : "unet3d_classes.safetensors";
  }
};

std::unique_ptr<Learner> GoldenLearner(const Golden& golden, const Case& run,
                                       const std::vector<std::string>& answers_mirrored = {},
                                       std::array<bool, 3> patches_mirrored = {},
                                       bool loops = true) {
  SetTorchThreads(2);  // on a single core, too: the order of sums depends on it
  LearnerOptions options;
  options.model = ModelOf("unet3d");
  options.model.unet3d->base = run.base;
  options.model.unet3d->levels = run.levels;
  if (run.instance) options.model.unet3d->norm = "instance";
  options.model.unet3d->deep_supervision = run.deep;
  options.model.unet3d->mirror = answers_mirrored;
  options.paths.handwritten_backward = loops;
  options.shape.image = run.shape();
  options.shape.outputs = run.classes == 1 ? 1 : run.classes + 1;
  options.objective.loss = run.classes == 1 ? LossKind::kDiceBce : LossKind::kDiceCe;
  LearnerData data;
  data.rows.rows = kSteps * kBatch;
  data.rows.media = std::make_shared<GoldenPatches>(golden, run.shape(), patches_mirrored);
  data.values.assign(static_cast<size_t>(kSteps * kBatch * options.shape.outputs), 0.0f);
  auto learner = Learner::Create(options, std::move(data));
  EXPECT_TRUE(learner.ok()) << learner.status().ToString();
  LoadWeights(golden, **learner, run.name + ".");
  EXPECT_TRUE((*learner)->SetOrder(RowsFrom(0, kSteps * kBatch)).ok());
  return *std::move(learner);
}

class Unet3dTest : public testing::TestWithParam<Case> {};

void ExpectLossesOfPyTorch(const Golden& golden, const Case& run, Learner& learner) {
  const std::vector<float> expected = golden.Floats("out." + run.name + ".losses");
  for (int64_t step = 0; step < kSteps; ++step) {
    const absl::Status stepped = learner.Step({step * kBatch, kBatch, kBatch, kLearningRate, 1});
    ASSERT_TRUE(stepped.ok()) << stepped.ToString();
    const auto loss = learner.ConsumeLoss();
    ASSERT_TRUE(loss.ok());
    const double wanted = expected[static_cast<size_t>(step)];
    EXPECT_NEAR(loss->mean(), wanted, 1e-5 * wanted) << "step " << step;
  }
}

TEST_P(Unet3dTest, LossesAndRunningStatisticsAreThoseOfPyTorchStepByStep) {
  const Case& run = GetParam();
  const Golden golden(run.file());
  const auto learner = GoldenLearner(golden, run);
  ExpectLossesOfPyTorch(golden, run, *learner);
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
  EXPECT_EQ(buffers, run.instance ? 0 : 4 * static_cast<size_t>(2 * run.levels - 1));
}

TEST_P(Unet3dTest, LossesOfTheOperatorsAreThoseOfPyTorchToo) {
  const Golden golden(GetParam().file());
  ExpectLossesOfPyTorch(golden, GetParam(),
                        *GoldenLearner(golden, GetParam(), {}, {}, /*loops=*/false));
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

// What a learner whose weights are the golden ones answers of the first patches: [voxels].
std::vector<float> AnswersOf(const Golden& golden, const Case& run,
                             const std::vector<std::string>& answers_mirrored,
                             std::array<bool, 3> patches_mirrored) {
  const auto learner = GoldenLearner(golden, run, answers_mirrored, patches_mirrored);
  std::vector<float> out(static_cast<size_t>(kBatch * kVoxels));
  EXPECT_TRUE(learner->Predict(Weights::kLast, RowsFrom(0, kBatch), absl::MakeSpan(out)).ok());
  return out;
}

// Logits of probabilities, at the places of the patch that is not mirrored, added to `sum`.
void AddLogits(const std::vector<float>& answers, const std::array<bool, 3>& mirror,
               std::vector<double>& sum) {
  for (int64_t i = 0; i < kBatch * kVoxels; ++i) {
    const double p = answers[static_cast<size_t>(i)];
    const int64_t at = i / kVoxels * kVoxels + Mirrored(i % kVoxels, mirror);
    sum[static_cast<size_t>(at)] += std::log(p / (1 - p));
  }
}

TEST(Unet3dMirrorTest, AnswersAreTheMeanOfThoseOfTheMirroredPatches) {
  const Case run{"instance", 1, 4, 3, 1, true};
  const Golden golden(run.file());
  const std::vector<std::string> axes = {"depth", "height", "width"};
  for (const unsigned chosen : {7u, 4u, 3u}) {  // a bit for each axis
    std::vector<std::string> mirror;
    std::vector<double> sum(static_cast<size_t>(kBatch * kVoxels));
    int views = 0;
    for (unsigned view = 0; view < 8; ++view) {
      if (view < 3 && (chosen >> view & 1) != 0) mirror.push_back(axes[view]);
      if ((view & ~chosen) != 0) continue;
      const std::array<bool, 3> along = {(view & 1) != 0, (view & 2) != 0, (view & 4) != 0};
      AddLogits(AnswersOf(golden, run, {}, along), along, sum);
      ++views;
    }
    const std::vector<float> answers = AnswersOf(golden, run, mirror, {});
    const std::vector<float> single = AnswersOf(golden, run, {}, {});
    double apart = 0;
    for (size_t i = 0; i < answers.size(); ++i) {
      ASSERT_NEAR(answers[i], 1 / (1 + std::exp(-sum[i] / views)), 2e-6) << chosen << " " << i;
      apart = std::max<double>(apart, std::abs(answers[i] - single[i]));
    }
    EXPECT_GT(apart, 1e-3) << "mirrored patches are answered otherwise";
  }
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
                                         Case{"three_classes", 1, 4, 2, 3},
                                         Case{"instance", 1, 4, 3, 1, true},
                                         Case{"instance_channels", 2, 3, 2, 1, true},
                                         Case{"supervised", 1, 4, 3, 1, true, true},
                                         Case{"flat", 2, 4, 3, 1, false, false, true},
                                         Case{"flat_supervised", 1, 3, 3, 1, true, true, true}),
                         [](const auto& run) { return run.param.name; });

}  // namespace
}  // namespace traind
