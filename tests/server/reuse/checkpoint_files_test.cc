#include "server/reuse/checkpoint_files.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/trees/tree_checkpoint.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kAttempt = 7;

class CheckpointFilesTest : public testing::Test {
 protected:
  CheckpointFilesTest()
      : state_(testing::TempDir() + "/checkpoint_files"), dir_(AttemptDir("job", kAttempt)) {
    fs::remove_all(state_);
    fs::create_directories(state_ + "/" + dir_);
  }

  SavedCheckpoint WriteNetwork(int64_t step) const {
    static const float kWeights[] = {1, 2};
    Checkpoint c;
    c.step = step;
    c.epoch_fraction = static_cast<double>(step) / 8;
    c.best_metric = 0.75;
    c.slots["weights"] = kWeights;
    c.slots["best_weights"] = kWeights;
    const ParameterLayout layout{{"layer.weight", {2}, 2}};
    return *WriteCheckpoint(state_, dir_, layout, c);
  }
  SavedTrees WriteSomeTrees(const std::string& kind, int64_t rounds) const {
    TreeCheckpoint c;
    c.kind = kind;
    c.rounds = rounds;
    c.epoch = 0.5;
    c.best_metric = std::nan("");
    c.trees = absl::StrCat("the trees of ", rounds, " rounds");
    return *WriteTrees(state_, dir_, c);
  }
  std::optional<facts::CheckpointSaved> Find(int64_t after = 0,
                                             DataCheck check = DataCheck::kDigest) const {
    return FindSavedCheckpoint(state_, "job", kAttempt, after, check);
  }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(absl::StrCat(state_, "/", dir_, "/", name)) << text;
  }

  const std::string state_, dir_;
};

TEST_F(CheckpointFilesTest, TheNewestOneIsFoundAndToldAsItsRankTellsIt) {
  WriteNetwork(9);
  const SavedCheckpoint written = WriteNetwork(12);
  Write("checkpoint-x.json", "{}");
  Write("model.json", "{}");
  const auto found = Find();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->step, 12);
  EXPECT_EQ(found->epoch, 1.5);
  EXPECT_EQ(found->best_metric, 0.75);
  EXPECT_EQ(found->manifest, written.manifest);
  EXPECT_EQ(found->sha256, written.sha256);
  EXPECT_EQ(found->bytes, written.bytes);
}

TEST_F(CheckpointFilesTest, TreesAreFoundToo) {
  for (const char* kind : {"lightgbm", "xgboost", "kernel"}) {
    WriteSomeTrees(kind, 20);
    const SavedTrees written = WriteSomeTrees(kind, 100);
    const auto found = Find();
    ASSERT_TRUE(found.has_value()) << kind;
    EXPECT_EQ(found->step, 100);
    EXPECT_EQ(found->epoch, 0.5);
    EXPECT_TRUE(std::isnan(found->best_metric));
    EXPECT_EQ(found->manifest, written.manifest);
    EXPECT_EQ(found->sha256, written.sha256);
    EXPECT_EQ(found->bytes, written.bytes);
    fs::remove_all(state_ + "/" + dir_);
    fs::create_directories(state_ + "/" + dir_);
  }
}

TEST_F(CheckpointFilesTest, WhatIsKnownAlreadyIsNotFoundAgain) {
  WriteNetwork(9);
  EXPECT_TRUE(Find(8).has_value());
  EXPECT_FALSE(Find(9).has_value());
}

TEST_F(CheckpointFilesTest, ADamagedOneGivesWayToTheOneBeforeIt) {
  const SavedCheckpoint sound = WriteNetwork(8);
  for (const int64_t step : {9, 10, 11}) WriteNetwork(step);
  WriteSomeTrees("lightgbm", 12);
  const std::string stem = absl::StrCat(state_, "/", dir_, "/checkpoint-");
  fs::resize_file(absl::StrCat(stem, "9.safetensors"), 3);
  fs::remove(absl::StrCat(stem, "10.safetensors"));
  std::string manifest = *ReadFile(absl::StrCat(stem, "11.json"));
  manifest[manifest.size() / 2] ^= 1;
  Write("checkpoint-11.json", manifest);
  Write("checkpoint-12.txt", "other trees");
  Write("checkpoint-13.json", "{\"step\": []}");
  // A manifest under another's name says nothing of that step.
  fs::copy_file(absl::StrCat(stem, "8.json"), absl::StrCat(stem, "14.json"));
  const auto found = Find();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->manifest, sound.manifest);
}

TEST_F(CheckpointFilesTest, WhoLooksAtSizesAloneDoesNotReadTheData) {
  WriteNetwork(8);
  for (const int64_t step : {9, 10, 11}) WriteNetwork(step);
  const std::string stem = absl::StrCat(state_, "/", dir_, "/checkpoint-");
  fs::remove(absl::StrCat(stem, "11.safetensors"));
  fs::resize_file(absl::StrCat(stem, "10.safetensors"), 3);
  const auto size = fs::file_size(absl::StrCat(stem, "9.safetensors"));
  fs::resize_file(absl::StrCat(stem, "9.safetensors"), 0);
  fs::resize_file(absl::StrCat(stem, "9.safetensors"), size);  // zeros
  EXPECT_EQ(Find(0, DataCheck::kSize)->step, 9);
  EXPECT_EQ(Find(0, DataCheck::kDigest)->step, 8);
}

TEST_F(CheckpointFilesTest, WhereThereIsNoneNoneIsFound) {
  EXPECT_FALSE(Find().has_value());
  fs::remove_all(state_);
  EXPECT_FALSE(Find().has_value());
}

}  // namespace
}  // namespace traind
