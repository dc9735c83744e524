// PREPARE of volumes that are resampled, and of masks whose largest components are kept.
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/job_layout.h"
#include "common/data/table/npy.h"
#include "common/data/volume/mask_reader.h"
#include "common/data/volume/nifti_header.h"
#include "common/data/volume/volume_set.h"
#include "common/publish/publisher.h"
#include "worker/prepare/prepare.h"

namespace traind {
namespace {

namespace fs = std::filesystem;
using rank_protocol::Failed;
using rank_protocol::FloorReady;
using rank_protocol::FromProcess;
using rank_protocol::TableReady;
using ::testing::HasSubstr;

constexpr VolumeShape kShape{6, 8, 8, 1};
constexpr size_t kVoxels = 384;

class VolumeTreatmentTest : public ::testing::Test {
 protected:
  VolumeTreatmentTest() {
    std::string pattern = ::testing::TempDir() + "/treatment.XXXXXX";
    dir_ = mkdtemp(pattern.data());
    fs::create_directories(dir_ + "/state");
    fs::create_directories(dir_ + "/data/v");
    std::string train = "id,image,mask\n", test = train;
    for (int i = 0; i < 8; ++i) {
      // Most slices are 2 mm apart, those of volumes 2 and 6 are 4.
      PutVolume(i, i % 4 == 2 ? 4 : 2);
      absl::StrAppend(i < 6 ? &train : &test, i, ",v/", i, ".nii,v/", i, "_mask.nii\n");
    }
    Put("train.csv", train);
    Put("test.csv", test);
  }
  ~VolumeTreatmentTest() override { fs::remove_all(dir_); }

  void Put(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ + "/data/" + name, std::ios::binary) << text;
  }
  // The mask is a box of bright voxels. A bright speck lies apart from it, which is not in the
  // mask.
  void PutVolume(int i, double distance) const {
    NiftiGeometry geometry;
    geometry.pixdim = {1, 0.5, 0.75, distance};
    std::string voxels(kVoxels, '\0'), mask = voxels;
    for (size_t k = 0; k < kVoxels; ++k) {
      const size_t z = k / 64, y = k / 8 % 8, x = k % 8;
      const bool box = z >= 1 && z <= 4 && y >= 2 && y < 6 && x >= 1 && x < 4 + i % 2u;
      const bool speck = x >= 6 && y < 2 && z > 3;
      mask[k] = box ? '\1' : '\0';
      voxels[k] = static_cast<char>(box || speck ? 90 + i : static_cast<int>(k % 40));
    }
    Put(absl::StrCat("v/", i, ".nii"), NiftiMaskHeader(kShape, geometry) + voxels);
    Put(absl::StrCat("v/", i, "_mask.nii"), NiftiMaskHeader(kShape, geometry) + mask);
  }

  nlohmann::json Spec(const nlohmann::json& volume) const {
    return {{"api", "v1"},
            {"task", {{"type", "segmentation"}, {"metric", "dice"}}},
            {"data",
             {{"train", dir_ + "/data/train.csv"},
              {"test", dir_ + "/data/test.csv"},
              {"id", "id"},
              {"folds", 2},
              {"split", "kfold"},
              {"seed", "7"},
              {"volume", volume}}}};
  }
  std::vector<FromProcess> Run(const nlohmann::json& volume) const {
    rank_protocol::Prepare task;
    task.attempt = 42;
    task.job = "j";
    task.state_dir = dir_ + "/state";
    task.spec_json = Spec(volume).dump();
    std::vector<FromProcess> messages;
    RunPrepare(task, SystemClock(), [&](const FromProcess& m) { messages.push_back(m); });
    return messages;
  }
  std::string Failure(const nlohmann::json& volume) const {
    const auto messages = Run(volume);
    const auto* failed = std::get_if<Failed>(&messages.back());
    return failed == nullptr ? std::string("it did not fail") : failed->message;
  }

  std::vector<uint8_t> ReadMask(const std::string& path) const {
    auto reader = MaskReader::Open(path, kShape);
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::vector<uint8_t> mask(kVoxels);
    for (int64_t z = 0; reader.ok() && z < kShape.depth; ++z) {
      const auto slice = absl::MakeSpan(mask).subspan(static_cast<size_t>(z) * 64, 64);
      EXPECT_TRUE((*reader)->ReadSlice(z, slice).ok());
    }
    return mask;
  }
  std::vector<uint8_t> Answered(int i) const {
    return ReadMask(absl::StrCat(dir_, "/state/", CurrentLink("j"), "/masks/", i, ".nii.gz"));
  }
  // The mean Dice of the masks that were answered.
  double ScoreOfAnswers() const {
    double sum = 0;
    for (int i = 6; i < 8; ++i) {
      const auto answer = Answered(i),
                 wanted = ReadMask(absl::StrCat(dir_, "/data/v/", i, "_mask.nii"));
      double both = 0, all = 0;
      for (size_t k = 0; k < kVoxels; ++k) {
        both += answer[k] * wanted[k];
        all += answer[k] + wanted[k];
      }
      sum += 2 * both / all;
    }
    return sum / 2;
  }
  PublishedPrediction Standing() const {
    const auto standing = ReadStandingPrediction(dir_ + "/state", "j");
    EXPECT_TRUE(standing.ok()) << standing.status();
    return *standing;
  }

  std::string dir_;
};

TEST_F(VolumeTreatmentTest, TheFloorIsScoredByTheComponentsThatItAnswersWith) {
  const auto all = Run({{"components", "all"}});
  const auto* floor = std::get_if<FloorReady>(&all[1]);
  ASSERT_NE(floor, nullptr);
  EXPECT_LT(floor->score, 0.95);  // the specks are in all answers
  EXPECT_LT(*Standing().test_score, 0.95);
  EXPECT_EQ(Answered(6)[5 * 64 + 7], 1);
  fs::remove_all(dir_ + "/state/jobs");
  const auto largest = Run({{"components", "largest"}});
  floor = std::get_if<FloorReady>(&largest[1]);
  ASSERT_NE(floor, nullptr);
  EXPECT_EQ(floor->score, 1);
  EXPECT_EQ(*Standing().test_score, 1);
  EXPECT_EQ(ScoreOfAnswers(), 1);
  EXPECT_EQ(*Standing().oof_score, 1);
}

// The specks lie apart from the boxes, so the largest components alone score better.
TEST_F(VolumeTreatmentTest, ComponentsThatRaiseTheScoreAreChosen) {
  const auto messages = Run({{"components", "auto"}});
  const auto* floor = std::get_if<FloorReady>(&messages[1]);
  ASSERT_NE(floor, nullptr);
  EXPECT_LT(floor->score, 0.95);  // that of all components
  const PublishedPrediction standing = Standing();
  EXPECT_EQ(standing.tuned.largest, std::vector<int>{0});
  EXPECT_NEAR(*standing.oof_score, 1, 1e-6);
  EXPECT_EQ(*standing.test_score, 1);
  EXPECT_EQ(ScoreOfAnswers(), 1);
}

TEST_F(VolumeTreatmentTest, ComponentsThatDoNotRaiseTheScoreAreKept) {
  // The masks have two boxes of equal size in place of a box and a speck.
  for (int i = 0; i < 8; ++i) {
    std::string voxels(kVoxels, '\0'), mask = voxels;
    for (size_t k = 0; k < kVoxels; ++k) {
      const size_t x = k % 8;
      const bool box = k / 64 < 3 && (x < 2 || (x > 4 && x < 7 + i % 2u));
      mask[k] = box ? '\1' : '\0';
      voxels[k] = static_cast<char>(box ? 90 + i : static_cast<int>(k % 40));
    }
    Put(absl::StrCat("v/", i, ".nii"), NiftiMaskHeader(kShape, NiftiGeometry()) + voxels);
    Put(absl::StrCat("v/", i, "_mask.nii"), NiftiMaskHeader(kShape, NiftiGeometry()) + mask);
  }
  Run({{"components", "auto"}});
  EXPECT_TRUE(Standing().tuned.largest.empty());
  EXPECT_EQ(*Standing().test_score, 1);
  EXPECT_EQ(*Standing().oof_score, 1);
  fs::remove_all(dir_ + "/state/jobs");
  Run({{"components", "largest"}});
  EXPECT_LT(*Standing().test_score, 0.8);
}

TEST_F(VolumeTreatmentTest, VolumesAreResampledToTheMedianAndAnsweredOnTheirOwnGrid) {
  const auto messages = Run({{"spacing", "auto"}});
  const auto* ready = std::get_if<TableReady>(&messages[0]);
  ASSERT_NE(ready, nullptr) << std::get<Failed>(messages[0]).message;
  ASSERT_EQ(ready->warnings.size(), 1u);
  EXPECT_EQ(ready->warnings[0],
            "data.volume.spacing: 2 x 0.75 x 0.5 mm, the median of the training volumes (depth, "
            "height, width)");
  const auto set = *VolumeSet::Open(dir_ + "/state/" + VolumesOfTable(ready->table));
  const auto volumes = set->volumes(Split::kTrain);
  EXPECT_EQ(volumes[0].shape, kShape);
  EXPECT_EQ(volumes[0].type, VoxelType::kUint8);
  EXPECT_EQ(volumes[2].shape, (VolumeShape{12, 8, 8, 1}));
  EXPECT_EQ(volumes[2].own, kShape);
  EXPECT_EQ(volumes[2].foreground(), 2 * 4 * 4 * 3);
  EXPECT_EQ(set->TestVoxels(), 2 * 384 + 384);
  const PublishedPrediction standing = Standing();
  EXPECT_EQ(Answered(6)[2 * 64 + 3 * 8 + 2], 1);
  EXPECT_NEAR(*standing.test_score, ScoreOfAnswers(), 1e-9);
  EXPECT_LT(*standing.test_score, 0.95);
  EXPECT_GT(*standing.test_score, 0.5);
}

TEST_F(VolumeTreatmentTest, BothTreatmentsGoTogether) {
  const auto messages = Run({{"spacings", {2, 1.5, 0.25}}, {"components", "largest"}});
  const auto* ready = std::get_if<TableReady>(&messages[0]);
  ASSERT_NE(ready, nullptr) << std::get<Failed>(messages[0]).message;
  EXPECT_TRUE(ready->warnings.empty());
  const auto set = *VolumeSet::Open(dir_ + "/state/" + VolumesOfTable(ready->table));
  EXPECT_EQ(set->volumes(Split::kTrain)[0].shape, (VolumeShape{6, 4, 16, 1}));
  EXPECT_EQ(set->volumes(Split::kTest)[0].shape, (VolumeShape{12, 4, 16, 1}));
  const PublishedPrediction standing = Standing();
  EXPECT_NEAR(*standing.test_score, ScoreOfAnswers(), 1e-9);
  EXPECT_GT(*standing.test_score, 0.7);
  EXPECT_EQ(Answered(6)[5 * 64 + 7], 0);
}

TEST_F(VolumeTreatmentTest, EachTreatmentHasACacheOfItsOwn) {
  const auto cached = [this](const nlohmann::json& volume) {
    return std::get<TableReady>(Run(volume)[0]).cached;
  };
  const nlohmann::json treatments[] = {
      nlohmann::json::object(), {{"components", "largest"}},    {{"components", "auto"}},
      {{"spacing", "auto"}},    {{"spacings", {2, 0.75, 0.5}}}, {{"spacings", {2, 0.75, 0.25}}}};
  for (const nlohmann::json& volume : treatments) EXPECT_FALSE(cached(volume)) << volume;
  for (const nlohmann::json& volume : treatments) EXPECT_TRUE(cached(volume)) << volume;
  EXPECT_TRUE(cached({{"components", "all"}}));
  // The warning comes from the cache, too.
  EXPECT_EQ(std::get<TableReady>(Run({{"spacing", "auto"}})[0]).warnings.size(), 1u);
}

TEST_F(VolumeTreatmentTest, AFileWithoutASpacingIsNamed) {
  const int64_t shape[] = {kShape.depth, kShape.height, kShape.width};
  ASSERT_TRUE(WriteNpy(dir_ + "/data/v/3.nii", shape, std::vector<float>(kVoxels)).ok());
  const auto messages = Run({{"spacing", "auto"}});
  const auto* ready = std::get_if<TableReady>(&messages[0]);
  ASSERT_NE(ready, nullptr);
  ASSERT_EQ(ready->warnings.size(), 2u);
  EXPECT_THAT(ready->warnings[1], HasSubstr("1 of 6 volumes are left out"));
  EXPECT_THAT(ready->warnings[1],
              HasSubstr("v/3.nii: not a NIfTI file, so its spacing is unknown"));
  fs::copy(dir_ + "/data/v/3.nii", dir_ + "/data/v/7.nii", fs::copy_options::overwrite_existing);
  EXPECT_THAT(Failure({{"spacing", "auto"}}), HasSubstr("v/7.nii: not a NIfTI file"));
  PutVolume(3, 0);
  PutVolume(5, -2);
  EXPECT_THAT(Failure({{"spacing", "auto"}}),
              HasSubstr("v/5.nii: the header has a spacing of -2 along axis z"));
}

}  // namespace
}  // namespace traind
