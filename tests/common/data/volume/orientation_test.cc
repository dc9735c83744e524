// Orientations against nibabel (golden/make_orientations.py).
#include "common/data/volume/orientation.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "common/data/table/npy.h"
#include "common/data/volume/mask_reader.h"
#include "common/data/volume/mask_writer.h"
#include "common/data/volume/turned_reader.h"
#include "common/data/volume/volume_reader.h"
#include "common/data/volume/volume_set_writer.h"

namespace traind {
namespace {

constexpr VolumeShape kDeep{9, 9, 9, 1};
constexpr const char* kTurned[] = {"LPS.nii.gz", "LAS.nii", "RAI.nii.gz",
                                   "PSR.nii.gz", "ILA.nii", "ASR.nii.gz"};

std::string GoldenPath(absl::string_view name) {
  return absl::StrCat("tests/common/data/volume/golden/", name);
}
std::vector<float> Golden(absl::string_view name) {
  auto array = ReadNpyFloat(GoldenPath(name));
  EXPECT_TRUE(array.ok()) << array.status();
  return array->values;
}
std::string Scratch(absl::string_view name) {
  return absl::StrCat(testing::TempDir(), "/orientation_", name);
}

std::vector<float> ReadAll(VolumeReader& reader) {
  const VolumeShape& shape = reader.shape();
  std::vector<float> values(static_cast<size_t>(shape.depth * shape.slice()));
  const auto slice = static_cast<size_t>(shape.slice());
  for (int64_t z = shape.depth - 1; z >= 0; --z) {  // the order of slices does not matter
    const absl::Status read =
        reader.ReadSlice(z, absl::MakeSpan(values).subspan(static_cast<size_t>(z) * slice, slice));
    EXPECT_TRUE(read.ok()) << read;
  }
  return values;
}

// row: for x, y and z of the file, the axis of the room, and its sign.
Orientation Wanted(const float* row) {
  Orientation wanted;
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto room = static_cast<size_t>(row[2 * axis]);
    wanted.axes[2 - room] = 2 - axis;
    wanted.flipped[2 - room] = row[2 * axis + 1] < 0;
  }
  return wanted;
}

TEST(OrientationTest, TheClosestAxesAreThoseOfNibabel) {
  const std::vector<float> by_sform = Golden("orientations_sform.npy");
  for (size_t i = 0; i < by_sform.size(); i += 18) {
    NiftiGeometry geometry;
    geometry.sform_code = 1;
    for (size_t k = 0; k < 12; ++k) geometry.srow[k] = by_sform[i + k];
    EXPECT_EQ(OrientationOf(geometry, kDeep), Wanted(&by_sform[i + 12])) << i / 18;
  }
  const std::vector<float> by_qform = Golden("orientations_qform.npy");
  for (size_t i = 0; i < by_qform.size(); i += 13) {
    NiftiGeometry geometry;
    geometry.qform_code = 1;
    for (size_t k = 0; k < 4; ++k) geometry.pixdim[k] = by_qform[i + k];
    for (size_t k = 0; k < 3; ++k) geometry.quatern[k] = by_qform[i + 4 + k];
    EXPECT_EQ(OrientationOf(geometry, kDeep), Wanted(&by_qform[i + 7])) << i / 13;
  }
}

TEST(OrientationTest, WhereNothingIsToldAxesAreNotTurned) {
  NiftiGeometry geometry;
  geometry.srow = {-1, 0, 0, 0, 0, -1, 0, 0, 0, 0, -1, 0};
  EXPECT_FALSE(OrientationOf(geometry, kDeep).turned());
  geometry.sform_code = 1;
  EXPECT_TRUE(OrientationOf(geometry, kDeep).turned());
  geometry.srow[0] = 0;  // the axes span no room
  EXPECT_FALSE(OrientationOf(geometry, kDeep).turned());
}

// A coronal slice remains a slice: rows run to the head, columns to the right.
TEST(OrientationTest, AFileOfOneSliceRemainsOne) {
  NiftiGeometry geometry;
  geometry.sform_code = 1;
  geometry.srow = {0, -1, 0, 0, 0, 0, -1, 0, 1, 0, 0, 0};  // x: head, y: left, z: back
  const Orientation deep = OrientationOf(geometry, kDeep);
  EXPECT_EQ(deep.axes, (std::array<size_t, 3>{2, 0, 1}));
  EXPECT_EQ(deep.flipped, (std::array<bool, 3>{false, true, true}));
  const Orientation flat = OrientationOf(geometry, {1, 9, 9, 1});
  EXPECT_EQ(flat.axes, (std::array<size_t, 3>{0, 2, 1}));
  EXPECT_EQ(flat.flipped, (std::array<bool, 3>{false, false, true}));
}

TEST(OrientationTest, TurnedVoxelsAreThoseOfAsClosestCanonical) {
  std::vector<std::string> names(std::begin(kTurned), std::end(kTurned));
  names.emplace_back("SPL.nii.gz");  // two channels
  for (const std::string& name : names) {
    const std::string file = absl::StrCat("turned_", name);
    auto reader = *OpenVolume(GoldenPath(file));
    const VolumeShape shape = reader->shape();
    const Orientation orientation = OrientationOf(*reader->geometry(), shape);
    EXPECT_TRUE(orientation.turned());
    const auto turned = TurnedVolume(std::move(reader), orientation, Scratch(file));
    EXPECT_EQ(turned->shape(), (VolumeShape{6, 5, 4, shape.channels})) << name;
    EXPECT_EQ(ReadAll(*turned), Golden(absl::StrCat(file, ".expected.npy"))) << name;
    // Where slices are kept, none waits.
    EXPECT_EQ(std::filesystem::exists(Scratch(file)), !orientation.keeps_slices()) << name;
    if (orientation.keeps_slices()) continue;
    EXPECT_TRUE(std::filesystem::is_empty(Scratch(file))) << name;
  }
}

TEST(OrientationTest, CasesOfOtherOrientationsAreLearntAlike) {
  const std::string path = Scratch("set.bin");
  auto writer = *VolumeSetWriter::Create(path);
  for (const char* const name : kTurned) {
    const std::string file = absl::StrCat("turned_", name);
    ASSERT_TRUE(writer->Add(Split::kTrain, GoldenPath(file), "").ok());
  }
  ASSERT_TRUE(writer->Commit().ok());
  const auto set = *VolumeSet::Open(path);
  const auto volumes = set->volumes(Split::kTrain);
  std::vector<float> first(120), other(120);
  set->ReadPatch(volumes[0], {0, 0, 0}, {6, 5, 4}, first.data());
  for (const StoredVolume& volume : volumes) {
    EXPECT_EQ(volume.shape, (VolumeShape{6, 5, 4, 1}));
    EXPECT_EQ(volume.mean, volumes[0].mean);
    set->ReadPatch(volume, {0, 0, 0}, {6, 5, 4}, other.data());
    EXPECT_EQ(other, first);
  }
  EXPECT_EQ(set->treatment().reader, 2);
  // Models that have learnt from volumes of older engines see them unturned.
  VolumeTreatment older;
  older.reader = 1;
  writer = *VolumeSetWriter::Create(path, {}, older);
  EXPECT_EQ(writer->Add(Split::kTrain, GoldenPath("turned_PSR.nii.gz"), "")->shape,
            (VolumeShape{4, 6, 5, 1}));
}

// Writes a mask as the answer for a golden file; the turned voxels of that file over 99 are 1.
std::string Answer(const std::string& name, MaskForm form) {
  const std::string file = absl::StrCat("turned_", name);
  const auto reader = *OpenVolume(GoldenPath(file));
  const Orientation orientation = OrientationOf(*reader->geometry(), reader->shape());
  const std::vector<float> voxels = Golden(absl::StrCat(file, ".expected.npy"));
  std::vector<uint8_t> mask;
  for (const float voxel : voxels) mask.push_back(voxel > 99 ? 1 : 0);
  const std::string path = absl::StrCat(Scratch(file), MaskEnding(form));
  auto writer = *MaskWriter::Create(path, form, {6, 5, 4, 1}, *reader->geometry(), orientation);
  for (size_t z = 0; z < 6; ++z) {
    EXPECT_TRUE(writer->Append(absl::MakeConstSpan(mask).subspan(z * 20, 20)).ok());
  }
  EXPECT_TRUE(writer->Commit().ok());
  return path;
}

TEST(OrientationTest, AnswersLieOverTheirFiles) {
  for (const char* const name : kTurned) {
    const auto volume = *OpenVolume(GoldenPath(absl::StrCat("turned_", name)));
    const std::vector<float> voxels = ReadAll(*volume);
    for (const MaskForm form : {MaskForm::kNifti, MaskForm::kNpy, MaskForm::kTiff}) {
      const auto mask = *OpenVolume(Answer(name, form));
      ASSERT_EQ(mask->shape(), volume->shape()) << name;
      if (form == MaskForm::kNifti) {
        EXPECT_EQ(*mask->geometry(), *volume->geometry());
      }
      const std::vector<float> labels = ReadAll(*mask);
      for (size_t i = 0; i < voxels.size(); ++i) EXPECT_EQ(labels[i], voxels[i] > 99) << name;
    }
  }
}

MaskedVolume VolumeOf(const std::string& name) {
  const auto reader = *OpenVolume(GoldenPath(absl::StrCat("turned_", name)));
  MaskedVolume of(reader->shape());
  of.geometry = reader->geometry();
  of.orientation = OrientationOf(*of.geometry, of.shape);
  of.scratch = Scratch("mask");
  return of;
}

std::vector<uint8_t> ReadMask(MaskReader& reader) {
  std::vector<uint8_t> mask(120);
  for (size_t z = 0; z < 6; ++z) {
    const absl::Status read =
        reader.ReadSlice(static_cast<int64_t>(z), absl::MakeSpan(mask).subspan(z * 20, 20));
    EXPECT_TRUE(read.ok()) << read;
  }
  return mask;
}

TEST(OrientationTest, AMaskIsTurnedAsItsVolumeOrByItsOwnHeader) {
  const auto wanted =
      ReadMask(**MaskReader::Open(Answer("LPS.nii.gz", MaskForm::kNifti), VolumeOf("LPS.nii.gz")));
  for (const char* const name : kTurned) {
    // NPY has no header, so the mask's voxels are those of the volume's file.
    auto reader = MaskReader::Open(Answer(name, MaskForm::kNpy), VolumeOf(name));
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ(ReadMask(**reader), wanted) << name;
    reader = MaskReader::Open(Answer("LPS.nii.gz", MaskForm::kNifti), VolumeOf(name));
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ(ReadMask(**reader), wanted) << name;
  }
}

TEST(OrientationTest, AMaskThatLiesElsewhereIsRefused) {
  MaskedVolume moved = VolumeOf("PSR.nii.gz");
  for (const size_t offset : {3, 7, 11}) moved.geometry->srow[offset] += 40;
  const std::string path = Answer("LPS.nii.gz", MaskForm::kNifti);
  const auto refused = MaskReader::Open(path, moved);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().message(),
            absl::StrCat(path,
                         ": the mask's header tells other axes than its volume's, and places it "
                         "elsewhere; give it the header of the volume"));
  // Where both tell the same axes, voxels belong together one by one.
  MaskedVolume same = VolumeOf("LPS.nii.gz");
  for (const size_t offset : {3, 7, 11}) same.geometry->srow[offset] += 40;
  EXPECT_TRUE(MaskReader::Open(path, same).ok());
}

TEST(OrientationTest, AWrongVoxelIsNamedByItsPlaceInTheFile) {
  const MaskedVolume of = VolumeOf("PSR.nii.gz");  // x runs to the back, y to the head
  std::vector<float> values(120);
  values[2 * 30 + 1 * 5 + 3] = 9;
  const std::string path = Scratch("wrong.npy");
  const int64_t shape[] = {4, 6, 5};
  ASSERT_TRUE(WriteNpy(path, shape, values).ok());
  const auto reader = *MaskReader::Open(path, of);
  std::vector<uint8_t> slice(20);
  const absl::Status wrong = reader->ReadSlice(1, absl::MakeSpan(slice));
  EXPECT_TRUE(absl::StrContains(wrong.message(), "the mask's voxel at z 2, y 1, x 3 is 9"))
      << wrong;
}

}  // namespace
}  // namespace traind
