// Resampling against torch and scipy (golden/make_resampled.py).
#include "common/data/volume/resample.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "common/data/table/npy.h"
#include "common/data/volume/resampled_reader.h"
#include "common/data/volume/spacing.h"

namespace traind {
namespace {

constexpr VolumeShape kShape{5, 7, 6, 2};
constexpr VolumeShape kGrids[] = {
    {9, 11, 13, 2}, {2, 3, 4, 2}, {5, 4, 17, 2}, {1, 7, 6, 2}, {12, 1, 1, 2}};

std::string GoldenPath(absl::string_view name) {
  return absl::StrCat("tests/common/data/volume/golden/", name, ".npy");
}
std::string ResampledPath(absl::string_view name) {
  return GoldenPath(absl::StrCat("resampled_", name));
}
std::vector<float> Golden(absl::string_view name) {
  auto array = ReadNpyFloat(ResampledPath(name));
  EXPECT_TRUE(array.ok()) << array.status();
  return array->values;
}

std::vector<float> Resampled(const std::vector<float>& values, const VolumeShape& to,
                             LowPass low_pass = LowPass::kNone) {
  SliceResampler resampler(kShape, to, 2, low_pass);
  const auto plane = static_cast<size_t>(kShape.slice());
  std::vector<float> out;
  for (size_t z = 0; z < static_cast<size_t>(kShape.depth); ++z) {
    const auto slice = absl::MakeConstSpan(values).subspan(z * plane, plane);
    EXPECT_TRUE(resampler
                    .Add(slice,
                         [&](absl::Span<const float> resampled) {
                           out.insert(out.end(), resampled.begin(), resampled.end());
                           return absl::OkStatus();
                         })
                    .ok());
  }
  return out;
}

TEST(ResampleTest, ValuesAreThoseOfTorchAndScipy) {
  const std::vector<float> values = Golden("values");
  for (size_t i = 0; i < std::size(kGrids); ++i) {
    const std::vector<float> expected = Golden(absl::StrCat("values_", i));
    const std::vector<float> resampled = Resampled(values, kGrids[i]);
    ASSERT_EQ(resampled.size(), expected.size()) << i;
    for (size_t k = 0; k < expected.size(); ++k) {
      ASSERT_NEAR(resampled[k], expected[k], 2e-6) << i << " at " << k;
    }
  }
  EXPECT_EQ(Resampled(values, kShape), values);  // bit for bit
}

// By skimage (golden/make_blurred.py).
TEST(ResampleTest, CoarserVolumesAreBlurredFirst) {
  constexpr VolumeShape kCoarser[] = {
      {2, 3, 4, 2}, {5, 4, 17, 2}, {1, 7, 6, 2}, {12, 1, 1, 2}, {3, 7, 2, 2}};
  const std::vector<float> values = Golden("values");
  for (size_t i = 0; i < std::size(kCoarser); ++i) {
    const auto expected = ReadNpyFloat(GoldenPath(absl::StrCat("blurred_", i)));
    ASSERT_TRUE(expected.ok()) << expected.status();
    const std::vector<float> resampled = Resampled(values, kCoarser[i], LowPass::kGaussian);
    ASSERT_EQ(resampled.size(), expected->values.size()) << i;
    for (size_t k = 0; k < resampled.size(); ++k) {
      ASSERT_NEAR(resampled[k], expected->values[k], 2e-6) << i << " at " << k;
    }
    EXPECT_NE(resampled, Resampled(values, kCoarser[i])) << i;
  }
  constexpr VolumeShape kFiner{9, 11, 13, 2};
  EXPECT_EQ(Resampled(values, kFiner, LowPass::kGaussian), Resampled(values, kFiner));
}

TEST(ResampleTest, LabelsAreThoseOfTorchAndScipy) {
  constexpr VolumeShape kFile{kShape.depth, kShape.height, kShape.width, 1};
  for (size_t i = 0; i < std::size(kGrids); ++i) {
    VolumeShape grid = kGrids[i];
    grid.channels = 1;
    const std::vector<float> expected = Golden(absl::StrCat("labels_", i));
    ResampledMask mask(*MaskReader::Open(ResampledPath("labels"), kFile, 3), kFile, grid);
    std::vector<uint8_t> slice(static_cast<size_t>(grid.slice()));
    for (int64_t z = 0; z < grid.depth; ++z) {
      ASSERT_TRUE(mask.ReadSlice(z, absl::MakeSpan(slice)).ok());
      for (size_t k = 0; k < slice.size(); ++k) {
        ASSERT_EQ(slice[k], expected[static_cast<size_t>(z) * slice.size() + k]) << i;
      }
    }
  }
}

TEST(ResampleTest, AVolumeIsReadInAnyOrderAndToItsEnd) {
  const std::string path = absl::StrCat(testing::TempDir(), "/values.npy");
  std::vector<float> labels = Golden("labels");
  const int64_t shape[] = {5, 7, 6};
  ASSERT_TRUE(WriteNpy(path, shape, labels).ok());
  const VolumeShape to{2, 7, 6, 1};
  const auto reader = ResampledVolume(*OpenVolume(path), to, LowPass::kNone);
  EXPECT_EQ(reader->shape(), to);
  EXPECT_EQ(reader->type(), VoxelType::kFloat32);
  std::vector<float> first(42), second(42), again(42);
  ASSERT_TRUE(reader->ReadSlice(0, absl::MakeSpan(first)).ok());
  ASSERT_TRUE(reader->ReadSlice(1, absl::MakeSpan(second)).ok());
  ASSERT_TRUE(reader->ReadSlice(0, absl::MakeSpan(again)).ok());
  EXPECT_EQ(first, again);
  // Slice 0 lies at 0.75 of the file, slice 1 at 3.25.
  for (size_t k = 0; k < 42; ++k) {
    EXPECT_FLOAT_EQ(first[k], 0.25f * labels[k] + 0.75f * labels[42 + k]);
    EXPECT_FLOAT_EQ(second[k], 0.75f * labels[126 + k] + 0.25f * labels[168 + k]);
  }
  // Of three slices only the middle one is needed, but all are checked.
  labels.resize(126);
  labels[125] = std::nanf("");
  const int64_t three[] = {3, 7, 6};
  ASSERT_TRUE(WriteNpy(path, three, labels).ok());
  const auto wrong = ResampledVolume(*OpenVolume(path), {1, 7, 6, 1}, LowPass::kNone)
                         ->ReadSlice(0, absl::MakeSpan(first));
  EXPECT_TRUE(absl::StrContains(wrong.message(), "values.npy: the voxel at z 2, y 6, x 5"))
      << wrong;
}

NiftiGeometry GeometryOf(double x, double y, double z, int64_t units = 2) {
  NiftiGeometry geometry;
  geometry.pixdim = {1, x, y, z};
  geometry.xyzt_units = units;
  return geometry;
}

TEST(SpacingTest, ItIsThatOfTheHeaderInMillimetres) {
  EXPECT_EQ(*SpacingOf(GeometryOf(0.5, 0.75, 2.5)), (Spacing{2.5, 0.75, 0.5}));
  EXPECT_EQ(*SpacingOf(GeometryOf(0.5, 0.75, 2.5, 0)), (Spacing{2.5, 0.75, 0.5}));
  EXPECT_EQ(*SpacingOf(GeometryOf(0.5, 0.75, 2.5, 1 + 8)), (Spacing{2500, 750, 500}));
  EXPECT_EQ(*SpacingOf(GeometryOf(500, 750, 2500, 3)), (Spacing{2.5, 0.75, 0.5}));
  EXPECT_EQ(ToString(Spacing{2.5, 0.75, 0.5}), "2.5 x 0.75 x 0.5 mm");
  const auto none = SpacingOf(std::nullopt);
  EXPECT_TRUE(absl::StrContains(none.status().message(), "not a NIfTI file")) << none.status();
  for (const double wrong : {0.0, -1.0, HUGE_VAL}) {
    const auto spacing = SpacingOf(GeometryOf(1, wrong, 1));
    EXPECT_TRUE(absl::StrContains(spacing.status().message(), "along axis y; data.volume.spacing"))
        << spacing.status();
  }
}

TEST(SpacingTest, TheMedianIsTakenForEachAxis) {
  EXPECT_EQ(MedianOf({{3, 1, 5}, {1, 2, 4}, {2, 9, 6}}), (Spacing{2, 2, 5}));
  EXPECT_EQ(MedianOf({{3, 1, 5}, {1, 2, 4}}), (Spacing{2, 1.5, 4.5}));
}

TEST(SpacingTest, AGridKeepsTheLengthOfEachAxis) {
  const VolumeShape shape{10, 20, 31, 3};
  EXPECT_EQ(*ShapeAt(shape, {2, 1, 1}, {1, 2, 3}), (VolumeShape{20, 10, 10, 3}));
  EXPECT_EQ(*ShapeAt(shape, {2, 1, 1}, {2, 1, 1}), shape);
  EXPECT_EQ(*ShapeAt(shape, {1, 1, 1}, {100, 1, 1}), (VolumeShape{1, 20, 31, 3}));
  const auto deep = ShapeAt(shape, {10, 1, 1}, {0.001, 1, 1});
  EXPECT_TRUE(
      absl::StrContains(deep.status().message(), "along axis z it would have 100000 voxels"))
      << deep.status();
  const auto wide = ShapeAt(shape, {1, 1, 1}, {1, 0.001, 0.001});
  EXPECT_TRUE(absl::StrContains(wide.status().message(), "slices of 1860000000 values"))
      << wide.status();
}

}  // namespace
}  // namespace traind
