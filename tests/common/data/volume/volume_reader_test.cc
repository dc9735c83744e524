#include "common/data/volume/file_pair.h"
#include "common/data/volume/volume_reader.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "common/data/image/decode.h"
#include "common/data/table/npy.h"

namespace traind {
namespace {

std::string GoldenPath(const std::string& name) {
  return absl::StrCat("tests/common/data/volume/golden/", name);
}

// Returns all values of a volume, [D, H, W, C].
absl::StatusOr<std::vector<float>> ReadAll(const std::string& path) {
  auto reader = OpenVolume(path);
  if (!reader.ok()) return reader.status();
  const VolumeShape& shape = (*reader)->shape();
  std::vector<float> values(static_cast<size_t>(shape.depth * shape.slice()));
  const auto slice = static_cast<size_t>(shape.slice());
  for (int64_t z = shape.depth - 1; z >= 0; --z) {  // the order of slices does not matter
    const absl::Status read = (*reader)->ReadSlice(
        z, absl::MakeSpan(values).subspan(static_cast<size_t>(z) * slice, slice));
    if (!read.ok()) return read;
  }
  return values;
}

void ExpectAsGolden(const std::string& name, const std::string& golden) {
  const auto values = ReadAll(GoldenPath(name));
  ASSERT_TRUE(values.ok()) << values.status().ToString();
  const auto wanted = ReadNpyFloat(GoldenPath(golden + ".expected.npy"));
  ASSERT_TRUE(wanted.ok()) << wanted.status().ToString();
  EXPECT_EQ(*values, wanted->values) << name;
}

void ExpectRefused(const std::string& path, const std::string& part) {
  const auto values = ReadAll(path);
  ASSERT_FALSE(values.ok()) << path;
  EXPECT_EQ(values.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(values.status().message(), part)) << values.status().ToString();
  EXPECT_TRUE(absl::StrContains(values.status().message(), path)) << values.status().ToString();
}

// Copies the first bytes of a golden file into a file.
std::string Cut(const std::string& name, size_t bytes) {
  const std::string whole = *ReadFile(GoldenPath(name));
  EXPECT_LT(bytes, whole.size());
  const std::string path = absl::StrCat(testing::TempDir(), "/cut_", bytes, "_", name);
  EXPECT_TRUE(WriteFileDurably(path, whole.substr(0, bytes)).ok());
  return path;
}

TEST(VolumeReaderTest, VoxelsOfStacksAreThoseOfTifffile) {
  for (const char* type : {"u1", "i1", "u2", "i2", "u4", "i4", "f4"}) {
    const std::string stack = absl::StrCat("stack_", type, ".tif");
    ExpectAsGolden(stack, stack);
    ExpectAsGolden(absl::StrCat("array_", type, ".npy"), stack);
  }
  for (const char* form : {"big", "big_endian", "deflated", "tiled", "strips", "channels"}) {
    ExpectAsGolden(absl::StrCat(form, ".tif"), absl::StrCat(form, ".tif"));
  }
}

TEST(VolumeReaderTest, ArraysOfAnArchiveAndChannelsAreRead) {
  ExpectAsGolden("packed.npz", "packed.npz");
  ExpectAsGolden("channels.npy", "channels.tif");
  EXPECT_EQ((*OpenVolume(GoldenPath("channels.npy")))->shape(), (VolumeShape{4, 10, 12, 3}));
}

TEST(VolumeReaderTest, VoxelsOfNiftiFilesAreThoseOfNibabel) {
  for (const char* type : {"u1", "i1", "u2", "i2", "u4", "i4", "i8", "f4", "f8"}) {
    const std::string name = absl::StrCat("array_", type, ".nii");
    ExpectAsGolden(name, name);
  }
  for (const char* name :
       {"packed.nii.gz", "two.nii.gz", "channels.nii.gz", "swapped.nii", "scaled.nii.gz"}) {
    ExpectAsGolden(name, name);
  }
  EXPECT_EQ((*OpenVolume(GoldenPath("channels.nii.gz")))->shape(), (VolumeShape{4, 10, 12, 3}));
  EXPECT_EQ((*OpenVolume(GoldenPath("packed.nii.gz")))->type(), VoxelType::kUint16);
  EXPECT_EQ((*OpenVolume(GoldenPath("scaled.nii.gz")))->type(), VoxelType::kFloat32);
}

TEST(VolumeReaderTest, EachVersionOfNiftiTellsWhereTheVoxelsLie) {
  const auto first = (*OpenVolume(GoldenPath("packed.nii.gz")))->geometry();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->pixdim[3], 2.5);
  EXPECT_EQ(first->srow[3], 7);
  EXPECT_EQ(first->sform_code, 2);
  EXPECT_EQ((*OpenVolume(GoldenPath("swapped.nii")))->geometry(), first);
  const auto second = (*OpenVolume(GoldenPath("two.nii.gz")))->geometry();
  ASSERT_TRUE(second.has_value());
  for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(second->srow[i], first->srow[i], 1e-6) << i;
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(second->quatern[i], first->quatern[i], 1e-6) << i;
  EXPECT_FALSE((*OpenVolume(GoldenPath("array_u1.npy")))->geometry().has_value());
}

TEST(VolumeReaderTest, ADamagedNiftiFileIsRefused) {
  std::string bytes = *ReadFile(GoldenPath("packed.nii.gz"));
  bytes[bytes.size() - 7] ^= 1;  // of the checksum
  const std::string path = absl::StrCat(testing::TempDir(), "/damaged.nii.gz");
  ASSERT_TRUE(WriteFileDurably(path, bytes).ok());
  ExpectRefused(path, "incorrect data check");
  ExpectRefused(Cut("packed.nii.gz", 600), "the file ends in slice 3 of 4");
  ExpectRefused(Cut("packed.nii.gz", 60), "packed by gzip, but not a NIfTI file");
  ExpectRefused(Cut("array_i2.nii", 1000), "the file ends in slice 3 of 4");
  ExpectRefused(Cut("array_i2.nii", 200), "not a complete NIfTI file");
}

TEST(VolumeReaderTest, PairsOfNiftiAreReadByEitherFile) {
  for (const char* const name : {"both.hdr", "both.img", "both2.hdr", "both2.img"}) {
    ExpectAsGolden(name, "array_i2.nii");
  }
  EXPECT_EQ(OtherOfPair(GoldenPath("both.hdr")), GoldenPath("both.img"));
  EXPECT_EQ(OtherOfPair(GoldenPath("both.img")), GoldenPath("both.hdr"));
  EXPECT_EQ(OtherOfPair(GoldenPath("pair.hdr")), "");
  EXPECT_EQ(OtherOfPair(GoldenPath("array_i2.nii")), "");
  ASSERT_TRUE(WriteFileDurably(absl::StrCat(testing::TempDir(), "/cut.hdr"),
                               *ReadFile(GoldenPath("both.hdr")))
                  .ok());
  ASSERT_TRUE(WriteFileDurably(absl::StrCat(testing::TempDir(), "/cut.img"),
                               ReadFile(GoldenPath("both.img"))->substr(0, 700))
                  .ok());
  ExpectRefused(absl::StrCat(testing::TempDir(), "/cut.hdr"), "the file ends in slice 3 of 4");
}

std::string Image(const std::string& name) {
  return absl::StrCat("tests/common/data/image/golden/", name);
}

TEST(VolumeReaderTest, AnImageIsAVolumeOfOneSlice) {
  const auto flat = OpenVolume(GoldenPath("flat.npy"));
  ASSERT_TRUE(flat.ok()) << flat.status();
  EXPECT_EQ((*flat)->shape(), (VolumeShape{1, 10, 12, 1}));
  EXPECT_FALSE((*flat)->picture());
  for (const char* name : {"rgb.png", "colour.jpg"}) {
    const auto colour = OpenVolume(Image(name));
    ASSERT_TRUE(colour.ok()) << colour.status();
    EXPECT_TRUE((*colour)->picture());
    EXPECT_EQ((*colour)->shape().depth, 1);
    EXPECT_EQ((*colour)->shape().channels, 3);
    EXPECT_EQ((*colour)->type(), VoxelType::kUint8);
  }
  const auto image = DecodePng(*ReadFile(Image("rgb.png")));
  EXPECT_EQ(*ReadAll(Image("rgb.png")),
            std::vector<float>(image->pixels.begin(), image->pixels.end()));
  // The palette of a mask is not looked up.
  EXPECT_EQ((*OpenVolume(Image("palette.png")))->shape().channels, 3);
  EXPECT_EQ((*OpenVolume(Image("palette.png"), VolumeUse::kMask))->shape().channels, 1);
  const std::string cut = absl::StrCat(testing::TempDir(), "/cut.png");
  ASSERT_TRUE(WriteFileDurably(cut, ReadFile(Image("rgb.png"))->substr(0, 90)).ok());
  ExpectRefused(cut, "cut.png is a PNG file that is cut");
}

TEST(VolumeReaderTest, WhatIsWrongIsSaidWithItsPlace) {
  ExpectRefused(GoldenPath("complex.nii"), "NIfTI's data type 32;");
  ExpectRefused(GoldenPath("pair.hdr"),
                "in a file beside it (.img or .img.gz), which is not there");
  ExpectRefused(
      GoldenPath("analyze.hdr"),
      "a header of ANALYZE 7.5, which does not tell left from right; convert it to NIfTI");
  ExpectRefused(GoldenPath("sizes.tif"), "page 1 is 5 x 12 x 1 uint16, the first 10 x 12 x 1");
  ExpectRefused(GoldenPath("fortran.npy"), "Fortran order");
  ExpectRefused(GoldenPath("complex.npy"), "voxels of type <c8");
  ExpectRefused(GoldenPath("nan.npy"), "the voxel at z 2, y 3, x 4 is not a number");
  ExpectRefused(GoldenPath("nan.tif"), "the voxel at z 2, y 3, x 4 is not a number");
  ExpectRefused(GoldenPath("make_volumes.py"), "neither NPY, NPZ, TIFF, NIfTI, PNG nor JPEG");
  EXPECT_EQ(OpenVolume(GoldenPath("none.npy")).status().code(), absl::StatusCode::kNotFound);
}

// The bytes after the last voxel of a TIFF may be missing: they are not part of the volume.
TEST(VolumeReaderTest, AFileThatIsCutIsRefusedOrWholeAllTheSame) {
  ExpectRefused(Cut("array_f4.npy", 1000), "not a complete NPY file");
  ExpectRefused(Cut("packed.npz", 200), "");
  for (const char* name : {"stack_u2.tif", "big.tif", "deflated.tif", "tiled.tif"}) {
    const size_t size = ReadFile(GoldenPath(name))->size();
    const std::vector<float> whole = *ReadAll(GoldenPath(name));
    int refused = 0, cuts = 0;
    for (size_t bytes = 8; bytes < size; bytes += size / 40, ++cuts) {
      const std::string path = Cut(name, bytes);
      const auto values = ReadAll(path);
      if (!values.ok()) {
        ++refused;
        EXPECT_TRUE(absl::StrContains(values.status().message(), path)) << values.status();
      } else {
        EXPECT_EQ(*values, whole) << path;
      }
    }
    EXPECT_GT(refused, cuts / 2) << name;
  }
}

}  // namespace
}  // namespace traind
