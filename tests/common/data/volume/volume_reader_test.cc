#include "common/data/volume/volume_reader.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/durable_file.h"
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

TEST(VolumeReaderTest, WhatIsWrongIsSaidWithItsPlace) {
  ExpectRefused(GoldenPath("sizes.tif"), "page 1 is 5 x 12 x 1 uint16, the first 10 x 12 x 1");
  ExpectRefused(GoldenPath("fortran.npy"), "Fortran order");
  ExpectRefused(GoldenPath("flat.npy"), "(10, 12), not (D, H, W)");
  ExpectRefused(GoldenPath("complex.npy"), "voxels of type <c8");
  ExpectRefused(GoldenPath("nan.npy"), "the voxel at z 2, y 3, x 4 is not a number");
  ExpectRefused(GoldenPath("nan.tif"), "the voxel at z 2, y 3, x 4 is not a number");
  ExpectRefused(GoldenPath("make_volumes.py"), "neither NPY, NPZ nor TIFF");
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
