// The score of a volume is that of the mask that answers for it.
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "common/data/volume/answer_mask.h"
#include "common/data/volume/nifti_header.h"
#include "common/data/volume/overlap.h"
#include "common/data/volume/volume_set_writer.h"
#include "common/metrics/metrics.h"
#include "tests/worker/model/model_of.h"
#include "worker/data/volume_source.h"
#include "worker/learner/learner.h"

namespace traind {
namespace {

constexpr VolumeShape kShape{6, 8, 8, 1};
constexpr Extent3 kPatch{4, 8, 8};

// A NIfTI file whose slices are 2 mm apart.
std::string Put(const std::string& name, const std::string& voxels) {
  NiftiGeometry geometry;
  geometry.pixdim = {1, 1, 1, 2};
  const std::string path = absl::StrCat(testing::TempDir(), "/", name, ".nii");
  std::ofstream(path, std::ios::binary) << NiftiMaskHeader(kShape, geometry) << voxels;
  return path;
}

std::shared_ptr<const VolumeSet> SetOf(const VolumeTreatment& treatment) {
  std::string voxels(384, '\0'), mask = voxels;
  for (size_t i = 0; i < voxels.size(); ++i) {
    voxels[i] = static_cast<char>(i * 31 % 97);
    mask[i] = static_cast<char>(i * 13 % 5 % 3);
  }
  const std::string path = absl::StrCat(testing::TempDir(), "/scored");
  auto writer = *VolumeSetWriter::Create(path, {"one", "two"}, treatment);
  const auto added = writer->Add(Split::kTrain, Put("image", voxels), Put("mask", mask));
  EXPECT_TRUE(added.ok()) << added.status();
  EXPECT_TRUE(writer->Commit().ok());
  return *VolumeSet::Open(path);
}

// The head's weights, [3, 4] and [3], become large, so that an untrained network answers with every
// class.
void MakeDecided(Learner& learner) {
  Learner::State state = *learner.Save();
  std::vector<float>& weights = state.slots["weights"];
  const float head[] = {1, 1, 1, 1, 4, -3, 2, -2, -3, 4, -2, 2, 0, 0, 0};
  std::copy(std::begin(head), std::end(head), weights.end() - std::size(head));
  ASSERT_TRUE(learner.Load(state).ok());
}

struct Scored {
  double told = 0, of_answer = 0, of_voxels = 0;
  std::vector<float> gains;  // told, of each class
};

Scored ScoreOf(const VolumeTreatment& treatment) {
  const auto set = SetOf(treatment);
  const auto source = std::make_shared<const VolumeSource>(set, Split::kTrain, kPatch);
  const Metric metric = *MetricByName("dice");
  LearnerOptions options;
  options.model = ModelOf("unet3d", R"({"base":4,"levels":1,"norm":"instance"})");
  options.shape.image = {1, kPatch[0], kPatch[1], kPatch[2]};
  options.shape.outputs = set->values();
  options.objective.loss = LossKind::kDiceCe;
  options.mask_score = metric.kind().of_masks;
  LearnerData data;
  data.rows.rows = 1;
  data.rows.media = source;
  data.values.assign(static_cast<size_t>(options.shape.outputs), 0.0f);
  auto learner = Learner::Create(options, std::move(data));
  EXPECT_TRUE(learner.ok()) << learner.status();
  MakeDecided(**learner);
  std::vector<float> told(static_cast<size_t>(set->row_values())), values;
  const std::vector<int32_t> rows{0};
  EXPECT_TRUE((*learner)->Predict(Weights::kLast, rows, absl::MakeSpan(told)).ok());
  const auto keep = [&values](absl::Span<const float> answer) {
    values.insert(values.end(), answer.begin(), answer.end());
    return absl::OkStatus();
  };
  EXPECT_TRUE((*learner)->PredictVolumes(Weights::kLast, *source, keep).ok());
  const StoredVolume& volume = set->volumes(Split::kTrain)[0];
  EXPECT_EQ(values.size(), static_cast<size_t>(volume.shape.voxels() * 3));
  MaskScore of_answer(3), of_voxels(3);
  AnswerMask mask(*set, volume, [&](int64_t z, absl::Span<const uint8_t> labels) {
    of_answer.Add(labels, set->OwnMaskSlice(volume, z));
    return absl::OkStatus();
  });
  EXPECT_TRUE(mask.Add(values).ok());
  EXPECT_TRUE(mask.Finish().ok());
  std::vector<uint8_t> labels(values.size() / 3);
  LabelsOf(values, 3, absl::MakeSpan(labels));
  of_voxels.Add(labels, set->Mask(volume));
  return {told[0],
          of_answer.Score(metric.kind().of_masks),
          of_voxels.Score(metric.kind().of_masks),
          {told.begin() + 1, told.end()}};
}

TEST(VolumeScoresTest, ItIsThatOfTheMaskThatAnswers) {
  VolumeTreatment largest, resampled, both;
  largest.largest_component = both.largest_component = true;
  resampled.spacing = both.spacing = Spacing{1, 1.6, 1};
  const Scored plain = ScoreOf({});
  EXPECT_FLOAT_EQ(static_cast<float>(plain.told), static_cast<float>(plain.of_voxels));
  EXPECT_GT(plain.told, 0);
  for (const VolumeTreatment& treatment : {largest, resampled, both}) {
    const Scored scored = ScoreOf(treatment);
    EXPECT_FLOAT_EQ(static_cast<float>(scored.told), static_cast<float>(scored.of_answer));
    EXPECT_NE(static_cast<float>(scored.told), static_cast<float>(scored.of_voxels));
  }
}

TEST(VolumeScoresTest, WhatComponentsGainIsToldForEachClass) {
  VolumeTreatment largest, chosen;
  largest.largest_component = true;
  chosen.choose_components = true;
  const Scored plain = ScoreOf({}), scored = ScoreOf(chosen);
  EXPECT_TRUE(plain.gains.empty());
  ASSERT_EQ(scored.gains.size(), 2u);
  EXPECT_EQ(scored.told, plain.told);  // that of all components
  EXPECT_NEAR(scored.told + scored.gains[0] + scored.gains[1], ScoreOf(largest).told, 1e-6);
  EXPECT_NE(scored.gains[0], scored.gains[1]);
}

}  // namespace
}  // namespace traind
