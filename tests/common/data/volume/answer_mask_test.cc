// From predicted values to masks on the grids of the files.
#include "common/data/volume/answer_mask.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "common/data/table/npy.h"
#include "common/data/volume/answer_score.h"
#include "common/data/volume/mask_writer.h"
#include "common/data/volume/overlap.h"
#include "common/data/volume/resample.h"
#include "common/data/volume/volume_set_writer.h"

namespace traind {
namespace {

constexpr VolumeShape kShape{4, 6, 5, 1};

// A NIfTI file: a mask with the spacing z, y, x.
std::string Put(const std::string& name, const std::vector<uint8_t>& voxels,
                const Spacing& spacing) {
  NiftiGeometry geometry;
  geometry.pixdim = {1, spacing[2], spacing[1], spacing[0]};
  const std::string path = absl::StrCat(testing::TempDir(), "/", name, ".nii");
  std::ofstream(path, std::ios::binary)
      << NiftiMaskHeader(kShape, geometry) << std::string(voxels.begin(), voxels.end());
  return path;
}

std::vector<uint8_t> Voxels() {
  std::vector<uint8_t> voxels(120);
  for (size_t i = 0; i < voxels.size(); ++i) voxels[i] = i * 37 % 11 < 4 ? 1 : 0;
  return voxels;
}

std::shared_ptr<const VolumeSet> SetOf(const std::string& image, const std::string& mask,
                                       const VolumeTreatment& treatment,
                                       std::vector<std::string> classes = {}) {
  const std::string path = absl::StrCat(testing::TempDir(), "/set");
  auto writer = *VolumeSetWriter::Create(path, std::move(classes), treatment);
  const auto added = writer->Add(Split::kTrain, image, mask);
  EXPECT_TRUE(added.ok()) << added.status();
  EXPECT_TRUE(writer->Commit().ok());
  auto set = VolumeSet::Open(path);
  EXPECT_TRUE(set.ok()) << set.status();
  return *std::move(set);
}

std::vector<uint8_t> MaskOf(const VolumeSet& set, const std::vector<float>& values, size_t slices) {
  const StoredVolume& volume = set.volumes(Split::kTrain)[0];
  std::vector<uint8_t> labels;
  AnswerMask mask(set, volume, [&](int64_t z, absl::Span<const uint8_t> slice) {
    EXPECT_EQ(labels.size(), static_cast<size_t>(z) * slice.size());
    labels.insert(labels.end(), slice.begin(), slice.end());
    return absl::OkStatus();
  });
  const size_t part =
      slices * static_cast<size_t>(volume.shape.height * volume.shape.width * set.values());
  for (size_t at = 0; at < values.size(); at += part) {
    EXPECT_TRUE(mask.Add(absl::MakeConstSpan(values).subspan(at, part)).ok());
  }
  EXPECT_TRUE(mask.Finish().ok());
  return labels;
}

TEST(AnswerMaskTest, WithoutATreatmentItIsTheLabelOfEachVoxel) {
  const std::string file = Put("plain", Voxels(), {1, 1, 1});
  const auto set = SetOf(file, file, {});
  EXPECT_FALSE(set->treatment().largest_component);
  EXPECT_FALSE(set->volumes(Split::kTrain)[0].resampled());
  std::vector<float> values(120);
  std::vector<uint8_t> expected(120);
  for (size_t i = 0; i < 120; ++i) {
    values[i] = static_cast<float>(i * 29 % 100) / 100;
    expected[i] = values[i] >= 0.5f ? 1 : 0;
  }
  EXPECT_EQ(MaskOf(*set, values, 1), expected);
  EXPECT_EQ(MaskOf(*set, values, 3), expected);
}

TEST(AnswerMaskTest, TheLargestComponentOfEachClassIsKept) {
  const std::string file = Put("kept", std::vector<uint8_t>(120), {1, 1, 1});
  VolumeTreatment treatment;
  treatment.largest_component = true;
  const auto set = SetOf(file, file, treatment, {"liver", "tumour"});
  EXPECT_TRUE(set->treatment().largest_component);
  // Class 1: voxels 0 and 1, and 30 below them; class 2: voxel 8, and 118 and 119 far away.
  std::vector<float> values(360);
  for (size_t i = 0; i < 120; ++i) values[3 * i] = 0.4f;
  for (const size_t i : {0, 1, 30, 20}) values[3 * i + 1] = 0.6f;
  for (const size_t i : {8, 118, 119}) values[3 * i + 2] = 0.6f;
  std::vector<uint8_t> expected(120);
  expected[0] = expected[1] = expected[30] = 1;
  expected[118] = expected[119] = 2;
  EXPECT_EQ(MaskOf(*set, values, 2), expected);
}

TEST(AnswerMaskTest, ValuesAreResampledToTheGridOfTheFileBeforeTheyBecomeLabels) {
  const std::string file = Put("resampled", Voxels(), {3, 1, 2});
  VolumeTreatment treatment;
  treatment.spacing = Spacing{1.5, 2, 2};
  const auto set = SetOf(file, file, treatment);
  const StoredVolume& volume = set->volumes(Split::kTrain)[0];
  ASSERT_EQ(volume.shape, (VolumeShape{8, 3, 5, 1}));
  ASSERT_EQ(volume.own, kShape);
  // Along z voxel z of the file lies between 2z and 2z + 1; along y voxel y lies at (y - 0.5) / 2.
  std::vector<float> values(120);
  for (size_t i = 0; i < 120; ++i) values[i] = static_cast<float>(i * 29 % 100) / 100;
  const auto at = [&](size_t z, size_t y, size_t x) { return values[(z * 3 + y) * 5 + x]; };
  std::vector<uint8_t> expected;
  for (size_t z = 0; z < 4; ++z) {
    for (size_t y = 0; y < 6; ++y) {
      const size_t low = y == 0 ? 0 : (y - 1) / 2,
                   high = std::min<size_t>(2, low + (y > 0 ? 1 : 0));
      const float share = y % 2 == 1 ? 0.25f : 0.75f;
      for (size_t x = 0; x < 5; ++x) {
        const auto mean = [&](size_t row) {
          return (at(2 * z, row, x) + at(2 * z + 1, row, x)) / 2;
        };
        expected.push_back(mean(low) * (1 - share) + mean(high) * share >= 0.5f ? 1 : 0);
      }
    }
  }
  EXPECT_EQ(MaskOf(*set, values, 3), expected);
  EXPECT_EQ(MaskOf(*set, values, 8), expected);
}

TEST(AnswerMaskTest, AResampledVolumeKeepsTheMaskOfItsFile) {
  const std::vector<uint8_t> voxels = Voxels();
  const std::string file = Put("own", voxels, {3, 1, 2});
  VolumeTreatment treatment;
  treatment.spacing = Spacing{6, 0.5, 2};
  const auto set = SetOf(file, file, treatment);
  const StoredVolume& volume = set->volumes(Split::kTrain)[0];
  ASSERT_EQ(volume.shape, (VolumeShape{2, 12, 5, 1}));
  EXPECT_EQ(volume.type, VoxelType::kFloat32);
  std::vector<uint8_t> own;
  for (int64_t z = 0; z < 4; ++z) {
    const auto slice = set->OwnMaskSlice(volume, z);
    own.insert(own.end(), slice.begin(), slice.end());
  }
  EXPECT_EQ(own, voxels);
  // Slice z is nearest to 2z + 1 of the file, and row y to y / 2.
  int64_t foreground = 0;
  for (size_t i = 0; i < 120; ++i) {
    const size_t z = i / 60, y = i / 5 % 12, x = i % 5;
    ASSERT_EQ(set->Mask(volume)[i], voxels[((2 * z + 1) * 6 + y / 2) * 5 + x]) << i;
    foreground += set->Mask(volume)[i];
  }
  EXPECT_EQ(volume.foreground(), foreground);
  std::vector<float> slice(60);
  set->ReadSlice(volume, 1, absl::MakeSpan(slice));
  const AxisTaps between = TapsOf(4, 2, LowPass::kGaussian)[1];  // slices 2 and 3, blurred
  float blurred = 0;
  for (size_t k = 0; k < between.weights.size(); ++k) {
    blurred += between.weights[k] * voxels[(static_cast<size_t>(between.first) + k) * 30];
  }
  EXPECT_FLOAT_EQ(slice[0], blurred);
  // Models of older engines have learnt from volumes that were not blurred.
  treatment.reader = 1;
  const auto older = SetOf(file, file, treatment);
  older->ReadSlice(older->volumes(Split::kTrain)[0], 1, absl::MakeSpan(slice));
  EXPECT_FLOAT_EQ(slice[0], (voxels[60] + voxels[90]) / 2.0f);
}

TEST(AnswerMaskTest, ChosenClassesKeepTheirLargestComponent) {
  VolumeTreatment treatment;
  treatment.choose_components = true;
  const std::string path = absl::StrCat(testing::TempDir(), "/chosen.nii");
  std::string voxels(kShape.depth * 30, '\0');
  voxels[0] = voxels[1] = voxels[4] = 1;     // a component of two voxels, and one of one
  voxels[20] = voxels[23] = voxels[24] = 2;  // the same of the second class
  std::ofstream(path, std::ios::binary) << NiftiMaskHeader(kShape, NiftiGeometry()) << voxels;
  const std::string set_path = absl::StrCat(testing::TempDir(), "/chosen");
  auto writer = *VolumeSetWriter::Create(set_path, {"one", "two"}, treatment);
  ASSERT_TRUE(writer->Add(Split::kTrain, path, path).ok());
  ASSERT_TRUE(writer->Commit().ok());
  const auto set = *VolumeSet::Open(set_path);
  EXPECT_EQ(set->row_values(), 3);
  const StoredVolume& volume = set->volumes(Split::kTrain)[0];
  std::vector<float> values;
  for (const char voxel : voxels) {
    for (int label = 0; label < 3; ++label) values.push_back(voxel == label ? 1.0f : 0.0f);
  }
  const auto answer = [&](const std::vector<int>& largest) {
    std::string labels;
    AnswerMask mask(
        *set, volume,
        [&](int64_t, absl::Span<const uint8_t> slice) {
          labels.append(slice.begin(), slice.end());
          return absl::OkStatus();
        },
        largest);
    EXPECT_TRUE(mask.Add(values).ok());
    EXPECT_TRUE(mask.Finish().ok());
    return labels;
  };
  EXPECT_EQ(answer({}), voxels);
  std::string expected = voxels;
  expected[4] = 0;
  EXPECT_EQ(answer({0}), expected);
  expected[20] = 0;
  EXPECT_EQ(answer({0, 1}), expected);
  // The mask is the answer, so without its smaller component each class loses a voxel of three.
  AnswerScore score(*set, volume);
  ASSERT_TRUE(score.Add(values).ok());
  ASSERT_TRUE(score.Finish().ok());
  float row[3];
  const auto dice = [](int64_t both, int64_t predicted, int64_t wanted) {
    return 2.0 * static_cast<double>(both) / static_cast<double>(predicted + wanted);
  };
  score.Read(dice, row);
  EXPECT_EQ(row[0], 1);
  EXPECT_FLOAT_EQ(row[1], (0.8f - 1) / 2);
  EXPECT_FLOAT_EQ(row[2], (0.8f - 1) / 2);
}

TEST(AnswerMaskTest, AVolumeWithoutASpacingIsNamed) {
  VolumeTreatment treatment;
  treatment.spacing = Spacing{1, 1, 1};
  auto writer =
      *VolumeSetWriter::Create(absl::StrCat(testing::TempDir(), "/refused"), {}, treatment);
  const auto array = writer->Add(Split::kTrain, "tests/common/data/volume/golden/array_f4.npy", "");
  EXPECT_TRUE(absl::StrContains(array.status().message(),
                                "array_f4.npy: not a NIfTI file, so its spacing is unknown"))
      << array.status();
  const auto flat = writer->Add(Split::kTrain, Put("flat", Voxels(), {1, 0, 1}), "");
  EXPECT_TRUE(absl::StrContains(flat.status().message(),
                                "flat.nii: the header has a spacing of 0 along axis y"))
      << flat.status();
}

}  // namespace
}  // namespace traind
