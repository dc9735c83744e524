#include "worker/data/volume_source.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/durable_file.h"
#include "common/table/npy.h"
#include "common/volume/volume_set_writer.h"

namespace traind {
namespace {

constexpr Extent3 kPatch{4, 4, 4};

// A volume of 12 x 16 x 20 whose only foreground is a small block, and one without any.
std::shared_ptr<const VolumeSource> MakeSource() {
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
  return std::make_shared<const VolumeSource>(*set, Split::kTrain, kPatch);
}

TEST(VolumeSourceTest, HalfOfThePatchesHaveForeground) {
  const auto source = MakeSource();
  int with = 0;
  std::set<Extent3> begins;
  for (int32_t row = 0; row < 800; row += 2) {  // all of volume 0
    MediaBatch batch;
    const std::vector<int32_t> rows{row};
    ASSERT_TRUE(source->Load({rows, /*training=*/true, 7}, batch).ok());
    float foreground = 0;
    for (const float voxel : batch.target) foreground += voxel;
    with += foreground > 0 ? 1 : 0;
    begins.insert(source->Draw(row, 7));
  }
  // Half of 400 and the few that have some by chance; far from all.
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

TEST(VolumeSourceTest, WhatIsDrawnFollowsFromSeedAndRowAlone) {
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

}  // namespace
}  // namespace traind
