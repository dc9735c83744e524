#include "worker/data/volume_source.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "common/data/table/npy.h"
#include "common/data/volume/volume_set_writer.h"

namespace traind {
namespace {

constexpr Extent3 kPatch{4, 4, 4};

// A volume of 12 x 16 x 20 whose only foreground is a small block, and one without foreground.
std::shared_ptr<const VolumeSource> MakeSource(const PatchChanges& changes = {}) {
  const std::string folder = testing::TempDir();
  const int64_t shape[] = {12, 16, 20};
  std::vector<float> voxels(12 * 16 * 20);
  for (size_t i = 0; i < voxels.size(); ++i) voxels[i] = static_cast<float>(i % 101);
  std::string block(voxels.size(), '\0'), none(voxels.size(), '\0');
  for (size_t z = 5; z < 7; ++z) {
    for (size_t x = 9; x < 11; ++x) block[(z * 16 + 3) * 20 + x] = 1;
  }
  EXPECT_TRUE(WriteNpy(folder + "/volume.npy", shape, voxels).ok());
  EXPECT_TRUE(WriteFileDurably(folder + "/block.npy", NpyHeaderText("|u1", shape) + block).ok());
  EXPECT_TRUE(WriteFileDurably(folder + "/none.npy", NpyHeaderText("|u1", shape) + none).ok());
  auto writer = *VolumeSetWriter::Create(folder + "/set");
  for (const char* mask : {"/block.npy", "/none.npy"}) {
    EXPECT_TRUE(writer->Add(Split::kTrain, folder + "/volume.npy", folder + mask).ok());
  }
  EXPECT_TRUE(writer->Commit().ok());
  auto set = VolumeSet::Open(folder + "/set");
  EXPECT_TRUE(set.ok()) << set.status().ToString();
  return std::make_shared<const VolumeSource>(*set, Split::kTrain, kPatch, changes);
}

TEST(VolumeSourceTest, HalfOfThePatchesHaveForeground) {
  const auto source = MakeSource();
  int with = 0;
  std::set<Extent3> begins;
  for (int32_t row = 0; row < 800; row += 2) {  // all rows of volume 0
    MediaBatch batch;
    const std::vector<int32_t> rows{row};
    ASSERT_TRUE(source->Load({rows, /*training=*/true, 7}, batch).ok());
    float foreground = 0;
    for (const float voxel : batch.target) foreground += voxel;
    with += foreground > 0 ? 1 : 0;
    begins.insert(source->Draw(row, 7));
  }
  // Half of 400, plus a few that have foreground by chance, but far from all.
  EXPECT_GT(with, 180);
  EXPECT_LT(with, 270);
  EXPECT_GT(begins.size(), 150u);
}

TEST(VolumeSourceTest, PatchesLieInTheVolumeAlsoWhereTheMaskIsEmpty) {
  const auto source = MakeSource();
  for (int32_t row = 0; row < 200; ++row) {
    const Extent3 begin = source->Draw(row, 3);
    for (size_t axis = 0; axis < 3; ++axis) {
      const Extent3 extent{12, 16, 20};
      EXPECT_GE(begin[axis], 0);
      EXPECT_LE(begin[axis] + kPatch[axis], extent[axis]);
    }
  }
}

TEST(VolumeSourceTest, PositionsFollowFromSeedAndRowAlone) {
  const auto source = MakeSource();
  MediaBatch together, alone;
  const std::vector<int32_t> rows{4, 9, 6};
  ASSERT_TRUE(source->Load({rows, true, 11}, together).ok());
  const size_t size = together.values.size() / 3;
  for (size_t i = 0; i < 3; ++i) {
    const std::vector<int32_t> one{rows[i]};
    ASSERT_TRUE(source->Load({one, true, 11}, alone).ok());
    EXPECT_EQ(alone.values, std::vector<float>(together.values.begin() + i * size,
                                               together.values.begin() + (i + 1) * size));
  }
  int as_by_another_seed = 0, as_another_row = 0;
  for (int32_t row = 0; row < 100; row += 2) {
    as_by_another_seed += source->Draw(row, 11) == source->Draw(row, 12) ? 1 : 0;
    as_another_row += source->Draw(row, 11) == source->Draw(row + 2, 11) ? 1 : 0;
  }
  EXPECT_LT(as_by_another_seed, 4);  // by chance
  EXPECT_LT(as_another_row, 4);
}

TEST(VolumeSourceTest, MasksBelongToTheirVoxels) {
  const auto source = MakeSource();
  MediaBatch batch;
  const std::vector<int32_t> rows{0, 2, 4, 6, 8, 10};
  ASSERT_TRUE(source->Load({rows, true, 5}, batch).ok());
  EXPECT_EQ(batch.shape, (std::vector<int64_t>{6, 4, 4, 4, 1}));
  EXPECT_EQ(batch.target_shape, (std::vector<int64_t>{6, 1, 4, 4, 4}));
  const StoredVolume& volume = source->volume(0);
  for (size_t i = 0; i < rows.size(); ++i) {
    const Extent3 begin = source->Draw(rows[i], 5);
    for (int64_t k = 0; k < 64; ++k) {
      const int64_t z = begin[0] + k / 16, y = begin[1] + k / 4 % 4, x = begin[2] + k % 4;
      const auto at = static_cast<size_t>((z * 16 + y) * 20 + x);
      const size_t cell = i * 64 + static_cast<size_t>(k);
      EXPECT_NEAR(batch.values[cell],
                  (static_cast<float>(at % 101) - volume.mean) / volume.deviation, 1e-5);
      EXPECT_EQ(batch.target[cell], source->set().Mask(volume)[at]);
    }
  }
}

// 20 x 20 x 20 voxels: class 1 is one voxel, class 3 half of the volume, class 2 does not
// occur.
TEST(VolumeSourceTest, ClassesOfAVolumeTakeTurns) {
  const std::string folder = testing::TempDir();
  const int64_t shape[] = {20, 20, 20};
  std::vector<float> voxels(8000);
  for (size_t i = 0; i < voxels.size(); ++i) voxels[i] = static_cast<float>(i % 13);
  std::string mask(8000, '\0');
  for (size_t i = 4000; i < 8000; ++i) mask[i] = 3;
  mask[2 * 400 + 2 * 20 + 2] = 1;
  ASSERT_TRUE(WriteNpy(folder + "/v.npy", shape, voxels).ok());
  ASSERT_TRUE(WriteFileDurably(folder + "/m.npy", NpyHeaderText("|u1", shape) + mask).ok());
  auto writer = *VolumeSetWriter::Create(folder + "/classes", {"a", "b", "c"});
  ASSERT_TRUE(writer->Add(Split::kTrain, folder + "/v.npy", folder + "/m.npy").ok());
  ASSERT_TRUE(writer->Commit().ok());
  const VolumeSource source(*VolumeSet::Open(folder + "/classes"), Split::kTrain, kPatch);
  for (const uint64_t seed : {1u, 2u, 3u, 4u}) {
    MediaBatch batch;
    std::vector<int32_t> rows;
    for (int32_t row = 0; row < 400; ++row) rows.push_back(row);
    ASSERT_TRUE(source.Load({rows, /*training=*/true, seed}, batch).ok());
    int one[2] = {0, 0};  // patches that contain the voxel, for even and for odd rows
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto begin = batch.target.begin() + static_cast<ptrdiff_t>(i * 64);
      one[i % 2] += std::count(begin, begin + 64, 1.0f);
      EXPECT_EQ(std::count(begin, begin + 64, 2.0f), 0);
    }
    // Half of the patches of one parity, and hardly any of the other.
    EXPECT_GT(std::max(one[0], one[1]), 70) << seed;
    EXPECT_LT(std::max(one[0], one[1]), 130) << seed;
    EXPECT_LT(std::min(one[0], one[1]), 10) << seed;
  }
}

TEST(VolumeSourceTest, PatchesAreMirroredAlongEachAxisWithTheirMasks) {
  const auto plain = MakeSource();
  for (size_t axis = 0; axis < 3; ++axis) {
    PatchChanges changes;
    changes.mirror[axis] = true;
    const auto source = MakeSource(changes);
    std::vector<int32_t> rows;
    for (int32_t row = 0; row < 200; row += 2) rows.push_back(row);
    MediaBatch before, after;
    ASSERT_TRUE(plain->Load({rows, true, 5}, before).ok());
    ASSERT_TRUE(source->Load({rows, true, 5}, after).ok());
    int same = 0, mirrored = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      bool is_same = true, is_mirrored = true;
      for (size_t k = 0; k < 64; ++k) {
        const size_t shift = axis == 0 ? 16 : axis == 1 ? 4 : 1, place = k / shift % 4;
        const size_t other = k + (3 - place) * shift - place * shift;
        for (const auto part : {&MediaBatch::values, &MediaBatch::target}) {
          const float value = (after.*part)[i * 64 + k];
          is_same &= value == (before.*part)[i * 64 + k];
          is_mirrored &= value == (before.*part)[i * 64 + other];
        }
      }
      EXPECT_TRUE(is_same || is_mirrored) << axis << " " << i;
      same += is_same ? 1 : 0;
      mirrored += is_mirrored ? 1 : 0;
    }
    EXPECT_GT(same, 30) << axis;
    EXPECT_GT(mirrored, 30) << axis;
  }
}

TEST(VolumeSourceTest, IntensityIsChangedAlikeInAPatchAndByAsMuchAsAskedFor) {
  PatchChanges changes;
  changes.intensity = 0.25;
  const auto plain = MakeSource(), source = MakeSource(changes);
  std::vector<int32_t> rows;
  for (int32_t row = 0; row < 200; ++row) rows.push_back(row);
  MediaBatch before, after;
  ASSERT_TRUE(plain->Load({rows, true, 5}, before).ok());
  ASSERT_TRUE(source->Load({rows, true, 5}, after).ok());
  EXPECT_EQ(before.target, after.target);
  double least = 2, most = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const float* from = before.values.data() + i * 64;
    const float* to = after.values.data() + i * 64;
    const auto [low, high] = std::minmax_element(from, from + 64);
    const double contrast = (to[high - from] - to[low - from]) / (*high - *low);
    const double brightness = to[low - from] - contrast * *low;
    for (size_t k = 0; k < 64; ++k) EXPECT_NEAR(to[k], from[k] * contrast + brightness, 1e-5);
    EXPECT_LE(std::abs(brightness), 0.25 + 1e-5);
    least = std::min(least, contrast);
    most = std::max(most, contrast);
  }
  EXPECT_GE(least, 0.75 - 1e-5);
  EXPECT_LT(least, 0.8);
  EXPECT_GT(most, 1.2);
  EXPECT_LE(most, 1.25 + 1e-5);
  // Patches for prediction are not changed.
  ASSERT_TRUE(plain->Load({rows, false, 5}, before).ok());
  ASSERT_TRUE(source->Load({rows, false, 5}, after).ok());
  EXPECT_EQ(before.values, after.values);
}

TEST(VolumeSourceTest, AWarpedPatchShowsTheVolumeAroundItToo) {
  PatchChanges changes;
  changes.warp = {180, 0, 0};
  const auto plain = MakeSource(), source = MakeSource(changes);
  std::vector<int32_t> rows;
  for (int32_t row = 0; row < 400; row += 2) rows.push_back(row);
  MediaBatch before, after;
  ASSERT_TRUE(plain->Load({rows, true, 5}, before).ok());
  ASSERT_TRUE(source->Load({rows, true, 5}, after).ok());
  int64_t foreground[2] = {0, 0};
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t k = 0; k < 64; ++k) {
      foreground[0] += before.target[i * 64 + k] == 1;
      foreground[1] += after.target[i * 64 + k] == 1;
      EXPECT_TRUE(after.target[i * 64 + k] == 0 || after.target[i * 64 + k] == 1);
    }
  }
  EXPECT_NE(before.values, after.values);
  EXPECT_GT(foreground[1], foreground[0] / 2);
  EXPECT_LT(foreground[1], foreground[0] * 2);
  ASSERT_TRUE(plain->Load({rows, false, 5}, before).ok());
  ASSERT_TRUE(source->Load({rows, false, 5}, after).ok());
  EXPECT_EQ(before.values, after.values) << "patches for prediction are not changed";
}

TEST(VolumeSourceTest, ChangesFollowFromSeedAndRowAlone) {
  PatchChanges changes;
  changes.warp = {20, 0.2, 1};
  changes.mirror = {true, true, true};
  changes.intensity = 0.5;
  const auto source = MakeSource(changes);
  MediaBatch together, alone, other;
  const std::vector<int32_t> rows{4, 9, 6};
  ASSERT_TRUE(source->Load({rows, true, 11}, together).ok());
  ASSERT_TRUE(source->Load({rows, true, 12}, other).ok());
  EXPECT_NE(together.values, other.values);
  for (size_t i = 0; i < 3; ++i) {  // in the order of another Rank
    const std::vector<int32_t> one{rows[i]};
    ASSERT_TRUE(source->Load({one, true, 11}, alone).ok());
    EXPECT_EQ(alone.values, std::vector<float>(together.values.begin() + i * 64,
                                               together.values.begin() + (i + 1) * 64));
    EXPECT_EQ(alone.target, std::vector<float>(together.target.begin() + i * 64,
                                               together.target.begin() + (i + 1) * 64));
  }
}

}  // namespace
}  // namespace traind
