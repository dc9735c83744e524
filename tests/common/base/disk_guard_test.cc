#include "common/base/disk_guard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

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

TEST(DiskGuard, WhatADeadProgramFilledTheDiskWithIsRemoved) {
  const std::string state = testing::TempDir() + "/filled_disk";
  std::filesystem::remove_all(state);
  const auto fill = [&state](const std::string& fold, int64_t mib) {
    std::filesystem::create_directories(state + "/" + fold + "/work");
    std::ofstream(state + "/" + fold + "/lock") << std::flush;
    std::ofstream(state + "/" + fold + "/tries") << "1" << std::flush;
    std::ofstream(state + "/" + fold + "/work/big.bin", std::ios::binary)
        << std::string(static_cast<size_t>(mib * kMiB), 'x') << std::flush;
    return state + "/" + fold;
  };
  const std::string dead = fill("jobs/a/program/fold-0", 20);
  const std::string small = fill("jobs/a/program/fold-1", 1);
  const std::string kept = fill("jobs/b/program/trial-2/fold-0", 20);
  const int lock = open((kept + "/lock").c_str(), O_RDWR);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  EXPECT_TRUE(ClearFilledDisk(state, {300 * kMiB, 100 * kMiB}).empty()) << "there is room";
  const DiskSpace full{300 * kMiB, 0};
  EXPECT_EQ(ClearFilledDisk(state, full), std::vector<std::string>{"jobs/a/program/fold-0"});
  EXPECT_FALSE(std::filesystem::exists(dead + "/work"));
  EXPECT_TRUE(std::filesystem::exists(dead + "/tries"));
  EXPECT_TRUE(std::filesystem::exists(small + "/work/big.bin")) << "its neighbour filled the disk";
  EXPECT_TRUE(std::filesystem::exists(kept + "/work/big.bin")) << "its keeper lives";
  close(lock);
  EXPECT_EQ(ClearFilledDisk(state, full),
            std::vector<std::string>{"jobs/b/program/trial-2/fold-0"});
  EXPECT_TRUE(ClearFilledDisk(state + "/none", full).empty());
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
