#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "common/data/table/npy.h"
#include "common/data/volume/mask_reader.h"
#include "common/data/volume/mask_writer.h"
#include "common/data/volume/nifti_header.h"

namespace traind {
namespace {

constexpr VolumeShape kShape{4, 10, 12, 1};

std::string GoldenPath(const std::string& name) {
  return absl::StrCat("tests/common/data/volume/golden/", name);
}

absl::StatusOr<std::vector<uint8_t>> ReadMask(const std::string& path, const VolumeShape& of,
                                              int classes = 1) {
  auto reader = MaskReader::Open(path, of, classes);
  if (!reader.ok()) return reader.status();
  std::vector<uint8_t> values(static_cast<size_t>(of.voxels()));
  const auto slice = static_cast<size_t>(of.height * of.width);
  for (int64_t z = 0; z < of.depth; ++z) {
    const absl::Status read = (*reader)->ReadSlice(
        z, absl::MakeSpan(values).subspan(static_cast<size_t>(z) * slice, slice));
    if (!read.ok()) return read;
  }
  return values;
}

void ExpectRefused(const std::string& name, const VolumeShape& of, const std::string& part) {
  const auto mask = ReadMask(GoldenPath(name), of);
  ASSERT_FALSE(mask.ok());
  EXPECT_TRUE(absl::StrContains(mask.status().message(), part)) << mask.status().ToString();
}

TEST(MaskReaderTest, MasksOfOneAndOf255AreTheSame) {
  const auto mask = ReadMask(GoldenPath("mask.npy"), kShape);
  ASSERT_TRUE(mask.ok()) << mask.status().ToString();
  EXPECT_EQ(*mask, *ReadMask(GoldenPath("mask_255.tif"), {4, 10, 12, 3}));
}

TEST(MaskReaderTest, OtherValuesAndShapesAreRefused) {
  ExpectRefused("mask_mixed.npy", kShape, "a mask has 0 and 1, or 0 and 255");
  ExpectRefused("array_u1.npy", kShape, "the mask's voxel at z 0, y 0, x 0 is");
  ExpectRefused("mask_small.npy", kShape,
                "a mask of 4 x 5 x 12 voxels for a volume of 4 x 10 x 12");
}

TEST(MaskReaderTest, SeveralClassesHaveTheirOwnValues) {
  const std::string path = absl::StrCat(testing::TempDir(), "/classes.npy");
  const int64_t shape[] = {kShape.depth, kShape.height, kShape.width};
  std::vector<float> values(480);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 4);
  ASSERT_TRUE(WriteNpy(path, shape, values).ok());
  const auto mask = ReadMask(path, kShape, 3);
  ASSERT_TRUE(mask.ok()) << mask.status();
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ((*mask)[i], i % 4);
  for (const float wrong : {4.0f, -1.0f, 1.5f, 255.0f}) {
    values[2 * 120 + 3 * 12 + 5] = wrong;
    ASSERT_TRUE(WriteNpy(path, shape, values).ok());
    const auto refused = ReadMask(path, kShape, 3);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().message(),
              absl::StrCat(path, ": the mask's voxel at z 2, y 3, x 5 is ", wrong,
                           "; a mask of 3 classes has 0 to 3"));
  }
}

TEST(MaskWriterTest, WhatWasWrittenIsRead) {
  std::vector<uint8_t> mask = *ReadMask(GoldenPath("mask.npy"), kShape);
  mask[7] = 2;
  for (const MaskForm form : {MaskForm::kNpy, MaskForm::kTiff, MaskForm::kNifti}) {
    const std::string path = absl::StrCat(testing::TempDir(), "/written", MaskEnding(form));
    auto writer = MaskWriter::Create(path, form, kShape);
    ASSERT_TRUE(writer.ok()) << writer.status().ToString();
    for (size_t z = 0; z < 4; ++z) {
      ASSERT_TRUE((*writer)->Append(absl::MakeConstSpan(mask).subspan(z * 120, 120)).ok());
    }
    ASSERT_TRUE((*writer)->Commit().ok());
    const auto read = ReadMask(path, kShape, 2);
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_EQ(*read, mask);
  }
}

TEST(MaskWriterTest, APngOfOneSliceIsReadAsItsNumbers) {
  const VolumeShape shape{1, 10, 12, 1};
  std::vector<uint8_t> mask(120);
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = static_cast<uint8_t>(i % 3);
  const std::string path = absl::StrCat(testing::TempDir(), "/mask", MaskEnding(MaskForm::kPng));
  auto writer = MaskWriter::Create(path, MaskForm::kPng, shape);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Append(mask).ok());
  ASSERT_TRUE((*writer)->Commit().ok());
  const auto read = ReadMask(path, shape, 2);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, mask);
}

// The bytes of version 1 are those that nibabel writes, but for what it does not tell.
TEST(MaskWriterTest, AHeaderOfNiftiSaysWhereTheVolumeLies) {
  const std::string golden = *ReadFile(GoldenPath("mask.nii"));
  const NiftiHeader header = *ParseNiftiHeader(golden);
  const std::string written = NiftiMaskHeader(kShape, header.geometry);
  ASSERT_EQ(written.size(), 352u);
  for (size_t i = 0; i < written.size(); ++i) {
    const bool slope = i >= 112 && i < 120;  // nibabel: not a number, as good as 1 and 0
    const bool regular = i == 38;            // a field that nobody reads
    if (slope || regular) continue;
    EXPECT_EQ(written[i], golden[i]) << "byte " << i;
  }
  const VolumeShape wide{2, 3, 40000, 1};  // more than version 1 can tell
  const auto second = ParseNiftiHeader(NiftiMaskHeader(wide, header.geometry));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->shape, wide);
  EXPECT_EQ(second->data_begin, 544u);
  EXPECT_EQ(second->geometry, header.geometry);
}

}  // namespace
}  // namespace traind
