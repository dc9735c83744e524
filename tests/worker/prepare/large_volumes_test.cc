// PREPARE of volumes, and of the floor's masks, takes a fraction of the volumes' memory.
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/job_layout.h"
#include "common/data/table/npy.h"
#include "tests/worker/device/child_peak.h"
#include "worker/prepare/prepare.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDepth = 96, kPlane = 512 * 512, kVoxels = kDepth * kPlane;  // one byte per voxel

// Zeros, with one bright voxel per slice. The file is sparse everywhere else.
void SparseNpy(const std::string& path, char value) {
  const std::string header = NpyHeaderText("|u1", {kDepth, 512, 512});
  std::ofstream(path, std::ios::binary) << header;
  ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(header.size()) + kVoxels), 0);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (int64_t z = 0; z < kDepth; ++z) {
    file.seekp(static_cast<std::streamoff>(header.size()) + z * kPlane + 7 * z);
    file.put(value);
  }
}

TEST(LargeVolumesTest, PrepareAndItsMasksTakeAPartOfOneVolumesMemory) {
  std::string dir = testing::TempDir() + "/large.XXXXXX";
  ASSERT_NE(mkdtemp(dir.data()), nullptr);
  fs::create_directories(dir + "/state");
  for (int i = 0; i < 3; ++i) {
    SparseNpy(absl::StrCat(dir, "/", i, ".npy"), '\x40');
    SparseNpy(absl::StrCat(dir, "/", i, "_mask.npy"), '\1');
  }
  std::ofstream(dir + "/train.csv") << "image,mask\n0.npy,0_mask.npy\n1.npy,1_mask.npy\n";
  std::ofstream(dir + "/test.csv") << "image,mask\n2.npy,2_mask.npy\n";
  const nlohmann::json spec = {{"api", "v1"},
                               {"task", {{"type", "segmentation"}, {"metric", "dice"}}},
                               {"data",
                                {{"train", dir + "/train.csv"},
                                 {"test", dir + "/test.csv"},
                                 {"folds", 2},
                                 {"seed", "7"},
                                 {"split", "kfold"},
                                 {"volume", nlohmann::json::object()}}}};
  double score = 0;
  const int64_t peak = PeakOfChild([&] {
    rank_protocol::Prepare task;
    task.attempt = 1;
    task.job = "j";
    task.state_dir = dir + "/state";
    task.spec_json = spec.dump();
    bool floor = false;
    RunPrepare(task, SystemClock(), [&](const rank_protocol::FromProcess& message) {
      if (const auto* failed = std::get_if<rank_protocol::Failed>(&message)) {
        std::fprintf(stderr, "%s\n", failed->message.c_str());
      }
      if (const auto* ready = std::get_if<rank_protocol::FloorReady>(&message)) {
        score = ready->score;
        floor = score > 0.99;
      }
    });
    return floor;
  });
  // The floor's prediction has 4 bytes per voxel.
  const int64_t answer = kVoxels * 4;
  std::printf("{\"volume_mb\": %.1f, \"answer_mb\": %.1f, \"peak_mb\": %.1f}\n",
              static_cast<double>(kVoxels) / 1e6, static_cast<double>(answer) / 1e6,
              static_cast<double>(peak) / 1e6);
  EXPECT_GT(peak, 0);
  EXPECT_LT(peak, kVoxels);
  EXPECT_LT(peak, answer / 4);
  EXPECT_TRUE(fs::exists(absl::StrCat(dir, "/state/", CurrentLink("j"), "/masks/0.npy")));
  fs::remove_all(dir);
}

}  // namespace
}  // namespace traind
