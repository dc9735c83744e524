// Predicting and scoring a volume takes a fraction of the volume's memory.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "common/data/table/npy.h"
#include "common/data/volume/volume_set_writer.h"
#include "tests/worker/device/child_peak.h"
#include "tests/worker/device/limited_memory.h"
#include "tests/worker/model/model_of.h"
#include "worker/data/volume_source.h"
#include "worker/learner/learner.h"

namespace traind {
namespace {

constexpr int64_t kDepth = 320, kHeight = 128, kWidth = 256;
constexpr int64_t kVoxels = kDepth * kHeight * kWidth;
constexpr Extent3 kPatch{8, 32, 64};

std::unique_ptr<Learner> LearnerOf(const std::shared_ptr<const VolumeSource>& source) {
  LearnerOptions options;
  options.model = ModelOf("unet3d", R"({"base":1,"levels":1})");
  options.shape.image = {1, kPatch[0], kPatch[1], kPatch[2]};
  options.shape.outputs = source->set().values();
  options.objective.loss = LossKind::kDiceCe;
  LearnerData data;
  data.rows.rows = 1;
  data.rows.media = source;
  data.values.assign(static_cast<size_t>(options.shape.outputs), 0.0f);
  auto learner = Learner::Create(options, std::move(data));
  EXPECT_TRUE(learner.ok()) << learner.status();
  return *std::move(learner);
}

TEST(LargeVolumeTest, PredictingAndScoringHoldNoMoreThanAPatchsDepth) {
  const std::string folder = testing::TempDir(), path = folder + "/large.npy";
  const std::vector<int64_t> shape = {kDepth, kHeight, kWidth};
  {
    std::vector<float> voxels(static_cast<size_t>(kVoxels));
    for (size_t i = 0; i < voxels.size(); ++i) voxels[i] = std::sin(static_cast<float>(i % 9973));
    ASSERT_TRUE(WriteNpy(path, shape, voxels).ok());
    std::string mask(voxels.size(), '\0');
    for (size_t i = 0; i < mask.size(); i += 3) mask[i] = static_cast<char>(i % 2 + 1);
    std::ofstream(folder + "/mask.npy", std::ios::binary) << NpyHeaderText("|u1", shape) << mask;
  }
  auto writer = *VolumeSetWriter::Create(folder + "/set", {"one", "two"});
  ASSERT_TRUE(writer->Add(Split::kTrain, path, folder + "/mask.npy").ok());
  ASSERT_TRUE(writer->Commit().ok());
  SetTorchThreads(1);
  const auto set = *VolumeSet::Open(folder + "/set");
  const auto source = std::make_shared<const VolumeSource>(set, Split::kTrain, kPatch);
  const std::unique_ptr<Learner> learner = LearnerOf(source);
  // Memory that torch needs for its first passes does not count.
  const auto stop = [](absl::Span<const float>) { return absl::CancelledError("enough"); };
  ASSERT_TRUE(absl::IsCancelled(learner->PredictVolumes(Weights::kLast, *source, stop)));
  std::vector<float> score(1);
  const std::vector<int32_t> rows{0};
  const int64_t peak = PeakOfChild([&] {
    int64_t values = 0;
    const auto count = [&](absl::Span<const float> answers) {
      values += static_cast<int64_t>(answers.size());
      return absl::OkStatus();
    };
    return learner->PredictVolumes(Weights::kLast, *source, count).ok() && values == kVoxels * 3 &&
           learner->Predict(Weights::kLast, rows, absl::MakeSpan(score)).ok() &&
           std::isfinite(score[0]);
  });
  constexpr int64_t kAnswer = kVoxels * 3 * 4, kVolume = kVoxels * 4;
  std::printf("{\"volume_mb\": %.1f, \"answer_mb\": %.1f, \"peak_mb\": %.1f}\n",
              static_cast<double>(kVolume) / 1e6, static_cast<double>(kAnswer) / 1e6,
              static_cast<double>(peak) / 1e6);
  EXPECT_GT(peak, 0);
  EXPECT_LT(peak, (kAnswer + kVolume) / 4);
  // Eight patches at a time, then fewer.
  std::vector<float> slices, with_less;
  const auto keep_first = [](std::vector<float>& out) {
    return [&out](absl::Span<const float> answers) {
      out.assign(answers.begin(), answers.end());
      return absl::CancelledError("enough");
    };
  };
  EXPECT_TRUE(
      absl::IsCancelled(learner->PredictVolumes(Weights::kLast, *source, keep_first(slices))));
  EXPECT_GE(learner->rows_at_once(), 8);
  {
    const LimitedMemory memory(4 << 20);
    const absl::Status limited =
        learner->PredictVolumes(Weights::kLast, *source, keep_first(with_less));
    EXPECT_TRUE(absl::IsCancelled(limited)) << limited;
  }
  EXPECT_LT(learner->rows_at_once(), 8);
  ASSERT_EQ(slices.size(), with_less.size());
  for (size_t i = 0; i < slices.size(); ++i) ASSERT_NEAR(slices[i], with_less[i], 1e-5) << i;
  unlink(path.c_str());
  unlink((folder + "/set").c_str());
}

}  // namespace
}  // namespace traind
