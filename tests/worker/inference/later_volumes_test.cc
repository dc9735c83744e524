// Volumes of later files, without LibTorch. tests/e2e/volume_predict_test.py covers the rest.
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/durable_file.h"
#include "common/data/table/npy.h"
#include "common/data/volume/volume_input_json.h"
#include "worker/inference/volumes_file.h"
#include "worker/predict/model_file.h"

namespace traind {
namespace {

using ::testing::HasSubstr;

class LaterVolumesTest : public ::testing::Test {
 protected:
  LaterVolumesTest() {
    std::string pattern = ::testing::TempDir() + "/later.XXXXXX";
    dir_ = std::filesystem::canonical(mkdtemp(pattern.data())).string();
    schema_.id = "id";
    schema_.targets = {"foreground"};
    schema_.text_columns = {"image"};
    input_.column = "image";
    const std::string values(2 * 3 * 4 * sizeof(float), '\x3f');
    EXPECT_TRUE(
        WriteFileDurably(dir_ + "/one.npy", absl::StrCat(NpyHeaderText("<f4", {2, 3, 4}), values))
            .ok());
    EXPECT_TRUE(WriteFileDurably(dir_ + "/two.npy",
                                 absl::StrCat(NpyHeaderText("<f4", {2, 1, 3, 4}), values))
                    .ok());
  }
  ~LaterVolumesTest() override { std::filesystem::remove_all(dir_); }

  // Decodes the volumes of a table.
  absl::StatusOr<VolumesFile> Decode(const std::string& table, bool keep_going = true) {
    const std::string path = dir_ + "/later.csv", rows_path = dir_ + "/rows.bin";
    EXPECT_TRUE(WriteFileDurably(path, table).ok());
    const auto info = WriteRowsFile(schema_, {"later.csv", table}, rows_path, dir_ + "/ids.bin",
                                    [] { return true; });
    EXPECT_TRUE(info.ok()) << info.status();
    const auto rows = RowsFile::Open(rows_path, schema_, info->rows);
    EXPECT_TRUE(rows.ok()) << rows.status();
    return WriteVolumesFile(input_, path, *rows, rows_path, [&] { return keep_going; });
  }
  std::string MessageOf(const std::string& table) {
    const auto file = Decode(table);
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument) << file.status();
    return std::string(file.status().message());
  }

  std::string dir_;
  InputSchema schema_;
  VolumeInput input_;
};

TEST_F(LaterVolumesTest, RowsAreTheTestVolumesInTheirOrder) {
  const auto file = Decode("id,image\na,one.npy\nb,./one.npy\n");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->set->volumes(Split::kTest).size(), 2u);
  EXPECT_TRUE(file->set->volumes(Split::kTrain).empty());
  EXPECT_EQ(file->set->TestVoxels(), 2 * 2 * 3 * 4);
  EXPECT_EQ(file->set->volumes(Split::kTest)[1].shape, (VolumeShape{2, 3, 4, 1}));
  EXPECT_EQ(file->sha256, Decode("id,image\na,one.npy\nb,one.npy\n")->sha256);
  EXPECT_NE(file->sha256, Decode("id,image\na,one.npy\n")->sha256);
}

TEST_F(LaterVolumesTest, FilesThatDoNotFitAreNamed) {
  EXPECT_THAT(MessageOf("id,image\na,one.npy\nb,two.npy\n"), HasSubstr("two.npy: 2 channels"));
  EXPECT_THAT(MessageOf("id,image\na,two.npy\n"),
              HasSubstr("two.npy: 2 channels, where the models have seen 1"));
  EXPECT_THAT(MessageOf("id,image\na,../one.npy\n"),
              HasSubstr("later.csv: '../one.npy' is not a file below the folder"));
  EXPECT_THAT(MessageOf("id,image\na,\n"), HasSubstr("later.csv: '' is not a file"));
  EXPECT_THAT(MessageOf("id,image\na,later.csv\n"), HasSubstr("later.csv"));
  input_.treatment.spacing = Spacing{1, 1, 1};
  EXPECT_THAT(MessageOf("id,image\na,one.npy\n"), HasSubstr("one.npy: not a NIfTI file"));
}

TEST_F(LaterVolumesTest, DecodingStopsWhereItIsTold) {
  EXPECT_EQ(Decode("id,image\na,one.npy\n", /*keep_going=*/false).status().code(),
            absl::StatusCode::kCancelled);
}

ModelFile ModelOfVolumes() {
  ModelFile file;
  file.job = "j";
  file.spec_json = R"({"data": {"volume": {"image": "image"}}})";
  file.input.targets = {"foreground"};
  file.encoder.target_mean = {0};
  file.encoder.target_scale = {1};
  file.volume =
      VolumeInput{"scan", 2, {"bright", "dark"}, {Spacing{2.5, 0.5, 0.75}, true}, {1, 64, 32}};
  return file;
}

TEST_F(LaterVolumesTest, AModelTellsWhatItReads) {
  ASSERT_TRUE(WriteModelFile(dir_, ".", ModelOfVolumes()).ok());
  const auto file = ReadModelFile(dir_, ".");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->input.text_columns, std::vector<std::string>({"scan"}));
  EXPECT_EQ(file->volume->column, "scan");
  EXPECT_EQ(file->volume->channels, 2);
  EXPECT_EQ(file->volume->values(), 3);
  EXPECT_TRUE(file->volume->treatment.largest_component);
  EXPECT_EQ(file->volume->patch, (Extent3{1, 64, 32}));
  EXPECT_EQ(file->volume->treatment.spacing, (Spacing{2.5, 0.5, 0.75}));
  EXPECT_EQ(file->volume->treatment.reader, kVolumeReaderVersion);
}

TEST_F(LaterVolumesTest, ModelsOfOlderReadersGetVolumesAsTheyHaveLearntThem) {
  nlohmann::json json = VolumeInputJson(*ModelOfVolumes().volume);
  json.erase("reader");
  const VolumeInput older = VolumeInputFromJson(json);
  EXPECT_EQ(older.treatment.reader, 1);
  EXPECT_FALSE(older.treatment.turns());
  EXPECT_FALSE(older.treatment.blurs());
  EXPECT_TRUE(older.treatment.largest_component);
  json["components"] = "auto";
  EXPECT_TRUE(VolumeInputFromJson(json).treatment.choose_components);
  EXPECT_FALSE(VolumeInputFromJson(json).treatment.largest_component);
}

TEST_F(LaterVolumesTest, AModelOfAnOlderEngineOrADamagedOneIsRefused) {
  ModelFile file = ModelOfVolumes();
  file.volume.reset();
  ASSERT_TRUE(WriteModelFile(dir_, ".", file).ok());
  EXPECT_EQ(ReadModelFile(dir_, ".").status().code(), absl::StatusCode::kFailedPrecondition);
  file = ModelOfVolumes();
  file.volume->channels = 0;
  ASSERT_TRUE(WriteModelFile(dir_, ".", file).ok());
  EXPECT_EQ(ReadModelFile(dir_, ".").status().code(), absl::StatusCode::kDataLoss);
  file = ModelOfVolumes();
  file.volume->patch[2] = 0;
  ASSERT_TRUE(WriteModelFile(dir_, ".", file).ok());
  EXPECT_EQ(ReadModelFile(dir_, ".").status().code(), absl::StatusCode::kDataLoss);
  file = ModelOfVolumes();
  (*file.volume->treatment.spacing)[1] = 0;
  ASSERT_TRUE(WriteModelFile(dir_, ".", file).ok());
  EXPECT_EQ(ReadModelFile(dir_, ".").status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace traind
