#include "common/data/volume/volume_set_writer.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/data/table/npy.h"

namespace traind {
namespace {

std::string GoldenPath(const std::string& name) {
  return absl::StrCat("tests/common/data/volume/golden/", name);
}
std::string SetPath(const std::string& name) { return absl::StrCat(testing::TempDir(), "/", name); }

// Makes a set of the golden volume in several types, with the golden mask.
std::shared_ptr<const VolumeSet> MakeSet(const std::string& path) {
  auto writer = VolumeSetWriter::Create(path);
  EXPECT_TRUE(writer.ok()) << writer.status().ToString();
  for (const char* name : {"stack_u1.tif", "stack_i2.tif", "array_u2.npy", "array_f4.npy"}) {
    const auto added = (*writer)->Add(Split::kTrain, GoldenPath(name), GoldenPath("mask.npy"));
    EXPECT_TRUE(added.ok()) << added.status().ToString();
  }
  EXPECT_TRUE((*writer)->Add(Split::kTest, GoldenPath("array_f4.npy"), "").ok());
  EXPECT_TRUE((*writer)->Commit().ok());
  auto set = VolumeSet::Open(path);
  EXPECT_TRUE(set.ok()) << set.status().ToString();
  return *std::move(set);
}

std::vector<float> GoldenVoxels(const std::string& type) {
  return ReadNpyFloat(GoldenPath(absl::StrCat("stack_", type, ".tif.expected.npy")))->values;
}

TEST(VolumeSetTest, ItKeepsWhereTheVoxelsOfNiftiFilesLie) {
  auto writer = *VolumeSetWriter::Create(SetPath("nifti"));
  for (const char* name : {"packed.nii.gz", "array_u2.npy"}) {
    ASSERT_TRUE(writer->Add(Split::kTest, GoldenPath(name), "").ok());
  }
  ASSERT_TRUE(writer->Commit().ok());
  const auto set = *VolumeSet::Open(SetPath("nifti"));
  const auto volumes = set->volumes(Split::kTest);
  ASSERT_TRUE(volumes[0].geometry.has_value());
  EXPECT_EQ(volumes[0].geometry, (*OpenVolume(GoldenPath("packed.nii.gz")))->geometry());
  EXPECT_FALSE(volumes[1].geometry.has_value());
}

TEST(VolumeSetTest, VoxelsAndMasksAreThoseOfTheFiles) {
  const auto set = MakeSet(SetPath("whole"));
  const std::vector<float> mask = ReadNpyFloat(GoldenPath("stack_u1.tif.expected.npy"))->values;
  size_t index = 0;
  for (const char* type : {"u1", "i2", "u2", "f4"}) {
    const StoredVolume& volume = set->volumes(Split::kTrain)[index++];
    const std::vector<float> wanted = GoldenVoxels(type);
    std::vector<float> slice(120);
    for (int64_t z = 0; z < 4; ++z) {
      set->ReadSlice(volume, z, absl::MakeSpan(slice));
      for (size_t i = 0; i < 120; ++i) {
        ASSERT_EQ(slice[i], wanted[static_cast<size_t>(z) * 120 + i]) << type;
      }
    }
    double sum = 0, squares = 0;
    for (const float value : wanted) {
      sum += value;
      squares += static_cast<double>(value) * value;
    }
    EXPECT_NEAR(volume.mean, sum / 480, 1e-4);
    EXPECT_NEAR(volume.deviation, std::sqrt(squares / 480 - sum / 480 * sum / 480), 1e-3);
    // The golden mask is 1 where the unsigned volume is above 100.
    int64_t foreground = 0;
    for (size_t i = 0; i < 480; ++i) {
      ASSERT_EQ(set->Mask(volume)[i], mask[i] > 100 ? 1 : 0);
      foreground += mask[i] > 100 ? 1 : 0;
    }
    EXPECT_EQ(volume.foreground(), foreground);
    ASSERT_EQ(volume.classes.size(), 1u);
    EXPECT_EQ(volume.classes[0].places, foreground);  // few enough to keep them all
    for (const int64_t place : set->Places(volume.classes[0])) {
      EXPECT_EQ(set->Mask(volume)[static_cast<size_t>(place)], 1);
    }
  }
  EXPECT_EQ(set->TestVoxels(), 480);
}

TEST(VolumeSetTest, EachClassHasItsVoxels) {
  const std::string path = SetPath("classes"), mask_path = SetPath("classes.npy");
  const int64_t shape[] = {4, 10, 12};
  std::vector<float> labels(480);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = i % 7 == 0 ? 2.0f : i % 11 == 3 ? 3.0f : 0;
  ASSERT_TRUE(WriteNpy(mask_path, shape, labels).ok());
  auto writer = *VolumeSetWriter::Create(path, {"liver", "vein, small", "tumour"});
  ASSERT_TRUE(writer->Add(Split::kTrain, GoldenPath("array_u1.npy"), mask_path).ok());
  ASSERT_TRUE(writer->Add(Split::kTest, GoldenPath("array_u1.npy"), "").ok());
  ASSERT_TRUE(writer->Commit().ok());
  const auto set = VolumeSet::Open(path);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ((*set)->classes(), (std::vector<std::string>{"liver", "vein, small", "tumour"}));
  EXPECT_EQ((*set)->values(), 4);
  const StoredVolume& volume = (*set)->volumes(Split::kTrain)[0];
  ASSERT_EQ(volume.classes.size(), 3u);
  int64_t foreground = 0;
  for (size_t c = 0; c < 3; ++c) {
    const auto wanted = std::count(labels.begin(), labels.end(), static_cast<float>(c + 1));
    EXPECT_EQ(volume.classes[c].voxels, wanted);
    EXPECT_EQ(volume.classes[c].places, wanted);
    for (const int64_t place : (*set)->Places(volume.classes[c])) {
      EXPECT_EQ((*set)->Mask(volume)[static_cast<size_t>(place)], c + 1);
    }
    foreground += wanted;
  }
  EXPECT_EQ(volume.foreground(), foreground);
  EXPECT_TRUE((*set)->volumes(Split::kTest)[0].classes.empty());
}

TEST(VolumeSetTest, PatchesAreOneSliceDeepWhereNoTrainingVolumeIsDeeper) {
  const auto patch_of = [](std::vector<const char*> train) {
    auto writer = *VolumeSetWriter::Create(SetPath("flat"));
    for (const char* name : train) {
      EXPECT_TRUE(writer->Add(Split::kTrain, GoldenPath(name), "").ok());
    }
    EXPECT_TRUE(writer->Add(Split::kTest, GoldenPath("array_f4.npy"), "").ok());
    EXPECT_TRUE(writer->Commit().ok());
    return (*VolumeSet::Open(SetPath("flat")))->PatchOf({16, 32, 64});
  };
  EXPECT_EQ(patch_of({"flat.npy", "flat.npy"}), (Extent3{1, 32, 64}));
  EXPECT_EQ(patch_of({"flat.npy", "array_f4.npy"}), (Extent3{16, 32, 64}));
}

TEST(VolumeSetTest, APatchIsStandardisedAndZeroBeyondTheVolume) {
  const auto set = MakeSet(SetPath("patches"));
  const StoredVolume& volume = set->volumes(Split::kTrain)[3];
  const std::vector<float> voxels = GoldenVoxels("f4");
  const Extent3 begin{-1, 7, 9}, extent{6, 5, 4};
  std::vector<float> patch(120), mask(120);
  set->ReadPatch(volume, begin, extent, patch.data());
  set->ReadMaskPatch(volume, begin, extent, mask.data());
  for (int64_t i = 0; i < 120; ++i) {
    const int64_t z = begin[0] + i / 20, y = begin[1] + i / 4 % 5, x = begin[2] + i % 4;
    const bool inside = z >= 0 && z < 4 && y < 10 && x < 12;
    const auto from = static_cast<size_t>((z * 10 + y) * 12 + x);
    const float wanted = inside ? (voxels[from] - volume.mean) / volume.deviation : 0;
    EXPECT_NEAR(patch[static_cast<size_t>(i)], wanted, 1e-5) << i;
    EXPECT_EQ(mask[static_cast<size_t>(i)], inside ? set->Mask(volume)[from] : 0) << i;
  }
}

TEST(VolumeSetTest, WhatCannotBeAddedSaysWhy) {
  auto writer = *VolumeSetWriter::Create(SetPath("refused"));
  const auto refused = [&](const std::string& image, const std::string& mask) {
    const auto added = writer->Add(Split::kTrain, GoldenPath(image), mask);
    return added.ok() ? std::string("added") : std::string(added.status().message());
  };
  ASSERT_TRUE(writer->Add(Split::kTrain, GoldenPath("array_u1.npy"), "").ok());
  EXPECT_TRUE(absl::StrContains(refused("nan.npy", ""), "is not a number"));
  EXPECT_TRUE(absl::StrContains(refused("channels.npy", ""), "3 channels, where the volumes"));
  EXPECT_TRUE(absl::StrContains(refused("array_u1.npy", GoldenPath("mask_small.npy")),
                                "a mask of 4 x 5 x 12 voxels"));
  ASSERT_TRUE(writer->Add(Split::kTrain, GoldenPath("array_u2.npy"), "").ok());
  ASSERT_TRUE(writer->Commit().ok());
  const auto set = *VolumeSet::Open(SetPath("refused"));
  ASSERT_EQ(set->volumes(Split::kTrain).size(), 2u);
  std::vector<float> slice(120);
  set->ReadSlice(set->volumes(Split::kTrain)[1], 0, absl::MakeSpan(slice));
  EXPECT_EQ(slice[5], GoldenVoxels("u2")[5]);
}

TEST(VolumeSetTest, ASetThatIsCutOrChangedIsRefused) {
  MakeSet(SetPath("sound"));
  const std::string sound = *ReadFile(SetPath("sound"));
  for (size_t bytes = 0; bytes < sound.size(); bytes += sound.size() / 50) {
    ASSERT_TRUE(WriteFileDurably(SetPath("cut"), sound.substr(0, bytes)).ok());
    EXPECT_FALSE(VolumeSet::Open(SetPath("cut")).ok()) << bytes;
  }
  for (size_t back = 17; back < 500; back += 31) {
    std::string changed = sound;
    changed[changed.size() - back] ^= 1;
    ASSERT_TRUE(WriteFileDurably(SetPath("cut"), changed).ok());
    EXPECT_FALSE(VolumeSet::Open(SetPath("cut")).ok()) << back;
  }
}

}  // namespace
}  // namespace traind
