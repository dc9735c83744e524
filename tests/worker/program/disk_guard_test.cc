#include "worker/program/disk_guard.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace traind {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20, kGiB = 1024 * kMiB;

TEST(DiskGuard, OnlyWhoTookAGoodPartOfAFullDiskIsEnded) {
  const DiskSpace full{100 * kGiB, 500 * kMiB};
  EXPECT_TRUE(FillsDisk(full, 50 * kGiB));
  EXPECT_FALSE(FillsDisk(full, 100 * kMiB)) << "its neighbour did";
  EXPECT_FALSE(FillsDisk({100 * kGiB, 2 * kGiB}, 90 * kGiB)) << "there is room";
  EXPECT_FALSE(FillsDisk({}, 90 * kGiB)) << "nothing is known";
  EXPECT_TRUE(FillsDisk({300 * kMiB, 0}, 250 * kMiB));
  EXPECT_FALSE(FillsDisk({300 * kMiB, 0}, 15 * kMiB));
}

TEST(DiskGuard, WhatIsHeldBackHasBounds) {
  EXPECT_EQ(HeldBack({100 * kMiB, 0}), 32 * kMiB);
  EXPECT_EQ(HeldBack({10 * kGiB, 0}), 10 * kGiB / 50);
  EXPECT_EQ(HeldBack({1000 * kGiB, 0}), kGiB);
}

TEST(DiskGuard, BytesOfAFolderAreCounted) {
  const std::string folder = testing::TempDir() + "/disk_guard";
  std::filesystem::create_directories(folder + "/deep");
  std::ofstream(folder + "/deep/a", std::ios::binary) << std::string(kMiB, 'x') << std::flush;
  EXPECT_GE(BytesBelow(folder), kMiB);
  EXPECT_LT(BytesBelow(folder), 2 * kMiB);
  EXPECT_EQ(BytesBelow(folder + "/none"), 0);
  EXPECT_GT(SpaceOf(folder).size, 0);
}

}  // namespace
}  // namespace traind
