// PREPARE of volumes: the table, the cache, the floor, and the masks that the floor predicts.
#include "worker/prepare/volume_media.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/data/table/npy.h"
#include "common/data/volume/mask_reader.h"
#include "common/data/volume/nifti_header.h"
#include "common/data/volume/volume_set.h"
#include "common/publish/floor_files.h"
#include "common/publish/publisher.h"
#include "worker/floor/volume_floor_model.h"
#include "worker/inference/floor_rows_model.h"
#include "worker/prepare/prepare.h"

namespace traind {
namespace {

namespace fs = std::filesystem;
using rank_protocol::Failed;
using rank_protocol::FloorReady;
using rank_protocol::FromProcess;
using rank_protocol::TableReady;
using ::testing::HasSubstr;

constexpr int64_t kShape[] = {3, 4, 5};

class VolumeMediaTest : public ::testing::Test {
 protected:
  VolumeMediaTest() {
    std::string pattern = ::testing::TempDir() + "/volumes.XXXXXX";
    dir_ = mkdtemp(pattern.data());
    fs::create_directories(dir_ + "/state");
    fs::create_directories(dir_ + "/data/v");
    std::string train = "id,image,mask\n", test = "id,image\n";
    for (int i = 0; i < 8; ++i) {
      Volume(i);
      absl::StrAppend(i < 6 ? &train : &test, "name/", i, ",v/", i, ".npy",
                      i < 6 ? absl::StrCat(",v/", i, "_mask.npy") : "", "\n");
    }
    Put("train.csv", train);
    Put("test.csv", test);
  }
  ~VolumeMediaTest() override { fs::remove_all(dir_); }

  void Put(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ + "/data/" + name, std::ios::binary) << text;
  }

  // Foreground are the values above 10 (voxels i + 1 and on), but for one voxel of volume 0.
  void Volume(int i) const {
    std::vector<float> voxels(60);
    std::string mask(60, '\0');
    for (size_t k = 0; k < 60; ++k) {
      const bool inside = static_cast<int>(k) > i && k % 4 == 0;
      voxels[k] = inside ? 20.0f + static_cast<float>(k) : static_cast<float>(k % 7);
      mask[k] = inside ? '\1' : '\0';
    }
    if (i == 0) mask[1] = '\1';
    EXPECT_TRUE(WriteNpy(absl::StrCat(dir_, "/data/v/", i, ".npy"), kShape, voxels).ok());
    Put(absl::StrCat("v/", i, "_mask.npy"), NpyHeaderText("|u1", kShape) + mask);
  }

  nlohmann::json Spec() const {
    return {{"api", "v1"},
            {"task", {{"type", "segmentation"}, {"metric", "dice"}}},
            {"data",
             {{"train", dir_ + "/data/train.csv"},
              {"test", dir_ + "/data/test.csv"},
              {"id", "id"},
              {"folds", 2},
              {"split", "kfold"},
              {"seed", "7"},
              {"volume", {{"image", "image"}, {"mask", "mask"}}}}}};
  }

  std::vector<FromProcess> Run(const nlohmann::json& spec) const {
    rank_protocol::Prepare task;
    task.attempt = 42;
    task.job = "j";
    task.state_dir = dir_ + "/state";
    task.spec_json = spec.dump();
    std::vector<FromProcess> messages;
    RunPrepare(task, SystemClock(), [&](const FromProcess& m) { messages.push_back(m); });
    return messages;
  }
  std::string Failure(const nlohmann::json& spec) const {
    const auto messages = Run(spec);
    const auto* failed = std::get_if<Failed>(&messages.back());
    return failed == nullptr ? std::string("it did not fail")
                             : absl::StrCat(Name(failed->reason), ": ", failed->message);
  }

  std::string dir_;
};

TEST_F(VolumeMediaTest, TheTableHasTheForegroundFractionAndTheCacheTheVoxels) {
  const auto messages = Run(Spec());
  ASSERT_NE(std::get_if<TableReady>(&messages[0]), nullptr) << Failure(Spec());
  const auto& ready = std::get<TableReady>(messages[0]);
  EXPECT_EQ(ready.train_rows, 6);
  EXPECT_EQ(ready.test_rows, 2);
  const auto table = *Table::Open(dir_ + "/state/" + ready.table);
  EXPECT_NEAR(table->TargetValue(Split::kTrain)[0], 15.0 / 60, 1e-6);  // 4, 8, ..., 56 and 1
  EXPECT_NEAR(table->TargetValue(Split::kTrain)[5], 13.0 / 60, 1e-6);
  EXPECT_FALSE(table->schema().test_has_target);
  const auto set = *VolumeSet::Open(dir_ + "/state/" + VolumesOfTable(ready.table));
  std::vector<float> slice(20);
  set->ReadSlice(set->volumes(Split::kTest)[1], 1, absl::MakeSpan(slice));
  EXPECT_EQ(slice[0], 40.0f);  // voxel 20
  EXPECT_EQ(slice[1], 0.0f);
}

TEST_F(VolumeMediaTest, TheFloorIsTheBestGlobalThresholdAndAnswersWithMasks) {
  const auto messages = Run(Spec());
  const auto* floor = std::get_if<FloorReady>(&messages[1]);
  ASSERT_NE(floor, nullptr);
  EXPECT_EQ(floor->model, "threshold");
  // A threshold separates all volumes but volume 0, of which it finds 14 of 15 voxels.
  EXPECT_NEAR(floor->score, (5 + 2 * 14.0 / 29) / 6, 1e-6);
  const auto standing = ReadStandingPrediction(dir_ + "/state", "j");
  ASSERT_TRUE(standing.ok()) << standing.status();
  EXPECT_EQ(standing->rows, 2);
  EXPECT_FALSE(standing->test_score.has_value());
  const std::string folder = absl::StrCat(dir_, "/state/", CurrentLink("j"));
  auto mask = MaskReader::Open(folder + "/masks/name_7.npy", VolumeShape{3, 4, 5, 1});
  ASSERT_TRUE(mask.ok()) << mask.status();
  std::vector<uint8_t> slice(20);
  ASSERT_TRUE((*mask)->ReadSlice(0, absl::MakeSpan(slice)).ok());
  for (size_t k = 0; k < 20; ++k) EXPECT_EQ(slice[k], k > 7 && k % 4 == 0 ? 1 : 0) << k;
  EXPECT_TRUE(fs::exists(folder + "/predictions.zip"));
}

TEST_F(VolumeMediaTest, MasksOfTheTestFileAreScored) {
  Put("test.csv", "id,image,mask\n6,v/6.npy,\n7,v/7.npy,v/7_mask.npy\n");
  nlohmann::json spec = Spec();
  spec["predictions"]["masks"] = "tiff";
  Run(spec);
  const auto standing = ReadStandingPrediction(dir_ + "/state", "j");
  ASSERT_TRUE(standing.ok()) << standing.status();
  ASSERT_TRUE(standing->test_score.has_value());
  EXPECT_NEAR(*standing->test_score, 1.0, 1e-9);
  EXPECT_TRUE(fs::exists(absl::StrCat(dir_, "/state/", CurrentLink("j"), "/masks/7.tiff")));
}

// The answers of the floor for the Job's own test volumes, by the model that was kept.
std::vector<float> ByKeptFloor(const std::string& state, const std::string& table) {
  auto model = ReadVolumeFloorModel(absl::StrCat(state, "/", FloorDir("j")));
  EXPECT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->input.id, "id");
  EXPECT_EQ(model->volume.column, "image");
  VolumeFloorRowsModel floor(*std::move(model));
  std::vector<float> values;
  const auto take = [&values](absl::Span<const float> slice) {
    values.insert(values.end(), slice.begin(), slice.end());
    return absl::OkStatus();
  };
  const auto between = [] { return absl::OkStatus(); };
  const auto set = *VolumeSet::Open(absl::StrCat(state, "/", VolumesOfTable(table)));
  EXPECT_TRUE(floor.PredictVolumes(set, take, between).ok());
  return values;
}

TEST_F(VolumeMediaTest, TheFloorIsKeptAsAModel) {
  const auto ready = std::get<TableReady>(Run(Spec())[0]);
  const auto values = ReadNpyFloat(absl::StrCat(dir_, "/state/", FloorDir("j"), "/test.npy"));
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(ByKeptFloor(dir_ + "/state", ready.table), values->values);
  const auto model = ReadVolumeFloorModel(absl::StrCat(dir_, "/state/", FloorDir("j")));
  EXPECT_EQ(model->name, "threshold");
  EXPECT_EQ(model->table_sha256, ready.content_sha256);
  const std::string path = absl::StrCat(dir_, "/state/", FloorDir("j"), "/", kVolumeFloorModelFile);
  std::string damaged = *ReadFile(path);
  damaged[damaged.size() / 2] ^= 1;
  ASSERT_TRUE(WriteFileDurably(path, damaged).ok());
  EXPECT_EQ(ReadVolumeFloorModel(absl::StrCat(dir_, "/state/", FloorDir("j"))).status().code(),
            absl::StatusCode::kDataLoss);
}

// Class 1 has values 30 to 39, class 2 60 to 69; the background lies below, between and above.
class ClassesTest : public VolumeMediaTest {
 protected:
  ClassesTest() {
    for (int i = 0; i < 8; ++i) {
      std::vector<float> voxels(60);
      std::string mask(60, '\0');
      for (size_t k = 0; k < 60; ++k) {
        voxels[k] = static_cast<float>((k * 7 + static_cast<size_t>(i) * 13) % 100);
        if (voxels[k] >= 30 && voxels[k] < 40) mask[k] = 1;
        if (voxels[k] >= 60 && voxels[k] < 70) mask[k] = 2;
      }
      EXPECT_TRUE(WriteNpy(absl::StrCat(dir_, "/data/v/", i, ".npy"), kShape, voxels).ok());
      Put(absl::StrCat("v/", i, "_mask.npy"), NpyHeaderText("|u1", kShape) + mask);
    }
  }
  nlohmann::json ClassSpec() const {
    nlohmann::json spec = Spec();
    spec["data"]["volume"]["classes"] = {"liver", "tumour"};
    return spec;
  }
};

TEST_F(ClassesTest, TheFloorFindsARangeForEachClass) {
  Put("test.csv", "id,image,mask\n6,v/6.npy,v/6_mask.npy\n7,v/7.npy,v/7_mask.npy\n");
  const auto messages = Run(ClassSpec());
  ASSERT_NE(std::get_if<TableReady>(&messages[0]), nullptr) << Failure(ClassSpec());
  const auto* floor = std::get_if<FloorReady>(&messages[1]);
  ASSERT_NE(floor, nullptr);
  EXPECT_EQ(floor->model, "ranges");
  EXPECT_GT(floor->score, 0.9);  // not 1, because a fold's own training volumes lack some values
  const auto standing = ReadStandingPrediction(dir_ + "/state", "j");
  ASSERT_TRUE(standing.ok()) << standing.status();
  ASSERT_TRUE(standing->test_score.has_value());
  EXPECT_NEAR(*standing->test_score, 1.0, 1e-9);
  const std::string folder = absl::StrCat(dir_, "/state/", CurrentLink("j"));
  auto mask = MaskReader::Open(folder + "/masks/7.npy", VolumeShape{3, 4, 5, 1}, 2);
  ASSERT_TRUE(mask.ok()) << mask.status();
  auto wanted = MaskReader::Open(dir_ + "/data/v/7_mask.npy", VolumeShape{3, 4, 5, 1}, 2);
  std::vector<uint8_t> slice(20), wanted_slice(20);
  double voxels[3] = {};
  for (int64_t z = 0; z < 3; ++z) {
    ASSERT_TRUE((*mask)->ReadSlice(z, absl::MakeSpan(slice)).ok());
    ASSERT_TRUE((*wanted)->ReadSlice(z, absl::MakeSpan(wanted_slice)).ok());
    EXPECT_EQ(slice, wanted_slice);
    for (const uint8_t label : slice) ++voxels[label];
  }
  std::ifstream csv(folder + "/predictions.csv");
  std::string header, six, seven;
  std::getline(csv, header);
  std::getline(csv, six);
  std::getline(csv, seven);
  EXPECT_EQ(header, "id,foreground,liver,tumour");
  const auto share = [](double of) { return static_cast<float>(of / 60); };
  EXPECT_EQ(seven, absl::StrFormat("7,%.8g,%.8g,%.8g", share(voxels[1] + voxels[2]),
                                   share(voxels[1]), share(voxels[2])));
  const auto values = ReadNpyFloat(absl::StrCat(dir_, "/state/", FloorDir("j"), "/test.npy"));
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->shape, (std::vector<int64_t>{120, 3}));
}

TEST_F(ClassesTest, TheFloorOfSeveralClassesIsKeptAsAModel) {
  const auto ready = std::get<TableReady>(Run(ClassSpec())[0]);
  const auto values = ReadNpyFloat(absl::StrCat(dir_, "/state/", FloorDir("j"), "/test.npy"));
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(ByKeptFloor(dir_ + "/state", ready.table), values->values);
  const auto model = ReadVolumeFloorModel(absl::StrCat(dir_, "/state/", FloorDir("j")));
  EXPECT_EQ(model->volume.classes, (std::vector<std::string>{"liver", "tumour"}));
}

TEST_F(ClassesTest, OtherClassesMakeAnotherTableAndOtherValuesAreNamed) {
  const auto one = std::get<TableReady>(Run(ClassSpec())[0]);
  nlohmann::json spec = ClassSpec();
  EXPECT_TRUE(std::get<TableReady>(Run(spec)[0]).cached);
  spec["data"]["volume"]["classes"] = {"liver", "vein"};
  EXPECT_FALSE(std::get<TableReady>(Run(spec)[0]).cached);
  // Value 2 is wrong if there is only one foreground class.
  EXPECT_THAT(Failure(Spec()), HasSubstr("DATA_ERROR: train.csv: 6 of 6 volumes are left out"));
  EXPECT_THAT(Failure(Spec()), HasSubstr("is 2; a mask has 0 and 1, or 0 and 255"));
}

TEST_F(VolumeMediaTest, OtherVoxelsOfAPairMakeAnotherTable) {
  std::string header = NiftiMaskHeader({3, 4, 5, 1}, NiftiGeometry());
  header.replace(344, 3, "ni1");
  const float no_offset = 0;
  header.replace(108, 4, reinterpret_cast<const char*>(&no_offset), 4);
  Put("v/1.hdr", header);
  Put("v/1.img", std::string(60, '\2'));
  std::string train = "id,image,mask\n";
  for (int i = 0; i < 6; ++i) {
    absl::StrAppend(&train, i, ",v/", i, i == 1 ? ".hdr" : ".npy", ",v/", i, "_mask.npy\n");
  }
  Put("train.csv", train);
  EXPECT_FALSE(std::get<TableReady>(Run(Spec())[0]).cached);
  EXPECT_TRUE(std::get<TableReady>(Run(Spec())[0]).cached);
  Put("v/1.img", std::string(60, '\3'));
  EXPECT_FALSE(std::get<TableReady>(Run(Spec())[0]).cached);
}

TEST_F(VolumeMediaTest, AnotherMaskMakesAnotherTable) {
  const auto before = std::get<TableReady>(Run(Spec())[0]);
  EXPECT_TRUE(std::get<TableReady>(Run(Spec())[0]).cached);
  Put("v/3_mask.npy", NpyHeaderText("|u1", kShape) + std::string(60, '\1'));
  const auto after = std::get<TableReady>(Run(Spec())[0]);
  EXPECT_FALSE(after.cached);
  EXPECT_NE(after.content_sha256, before.content_sha256);
}

TEST_F(VolumeMediaTest, AVolumeThatCannotBeReadIsLeftOutAndNamed) {
  Put("v/2.npy", "nothing");
  const auto messages = Run(Spec());
  ASSERT_NE(std::get_if<TableReady>(&messages[0]), nullptr);
  const auto& ready = std::get<TableReady>(messages[0]);
  EXPECT_EQ(ready.train_rows, 5);
  ASSERT_EQ(ready.warnings.size(), 1u);
  EXPECT_THAT(ready.warnings[0], HasSubstr("1 of 6 volumes are left out"));
  EXPECT_THAT(ready.warnings[0], HasSubstr("v/2.npy: neither NPY, NPZ, TIFF, NIfTI, PNG nor JPEG"));
  Put("v/3_mask.npy", NpyHeaderText("|u1", kShape) + std::string(60, '\3'));
  EXPECT_THAT(Failure(Spec()), HasSubstr("DATA_ERROR: train.csv: 2 of 6 volumes are left out"));
}

TEST_F(VolumeMediaTest, ABadTestFileOrPathIsAnError) {
  Put("v/7.npy", "nothing");
  EXPECT_THAT(Failure(Spec()), HasSubstr("v/7.npy: neither NPY"));
  Put("test.csv", "id,image\n1,/etc/passwd\n");
  EXPECT_THAT(Failure(Spec()), HasSubstr("'/etc/passwd' is not a file below the folder"));
  Put("test.csv", "id,image\n1,../../x.npy\n");
  EXPECT_THAT(Failure(Spec()), HasSubstr("'../../x.npy' is not a file below the folder"));
  Put("test.csv", "id,picture\n1,v/1.npy\n");
  EXPECT_THAT(Failure(Spec()), HasSubstr("there is no column 'image' (data.volume.image)"));
}

}  // namespace
}  // namespace traind
