#include "server/retention/scrub.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "common/job_rules/task_rules.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/trees/tree_checkpoint.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

const ParameterLayout& Layout() {
  static const ParameterLayout layout{{"layers.0.weight", {2, 3}, 6}, {"layers.0.bias", {2}, 2}};
  return layout;
}

Checkpoint Sample(int64_t step) {
  Checkpoint c;
  c.job = "job";
  c.attempt = 1;
  c.table_sha256 = "abc";
  c.step = step;
  c.world_size = 1;
  c.batch = 16;
  auto held = std::make_shared<std::map<std::string, std::vector<float>>>();
  for (const char* slot : {"weights", "best_weights", "exp_avg", "exp_avg_sq"}) {
    (*held)[slot].assign(8, static_cast<float>(step));
  }
  for (const auto& [slot, values] : *held) c.slots[slot] = values;
  c.owner = held;
  return c;
}

class ScrubTest : public testing::Test {
 protected:
  ScrubTest() : state_(testing::TempDir() + "/scrub") {
    fs::remove_all(state_);
    fs::create_directories(state_ + "/" + kDir);
    fs::create_directories(state_ + "/" + kTrees);
    for (const int64_t step : {10, 20}) {
      manifests_.push_back(*WriteCheckpoint(state_, kDir, Layout(), Sample(step)));
    }
    TreeCheckpoint trees;
    trees.kind = "lightgbm";
    trees.rounds = 5;
    trees.trees = "tree\nof some rounds\n";
    trees_ = *WriteTrees(state_, kTrees, trees);
  }

  void Flip(const std::string& path, int64_t from_end) {
    const std::string full = state_ + "/" + path;
    std::string bytes = *ReadFile(full);
    bytes[bytes.size() - static_cast<size_t>(from_end)] ^= 1;
    std::ofstream(full, std::ios::binary) << bytes;
  }
  std::vector<std::string> Damaged() const {
    std::vector<std::string> paths;
    for (const auto& file : FindDamage(state_, "job", [](int64_t) { return true; })) {
      paths.push_back(file.path);
    }
    return paths;
  }
  // Returns what is told in one round.
  std::vector<std::string> Scrub(bool resumes) {
    std::vector<std::string> told;
    Scrubber scrubber(
        {state_}, [resumes](const std::string&) { return resumes; },
        [&told](const DamagedFile& file) { told.push_back(Text(file)); });
    scrubber.RunOnce();
    return told;
  }

  static constexpr char kDir[] = "jobs/job/attempts/1";
  static constexpr char kTrees[] = "jobs/job/attempts/2";
  const std::string state_;
  std::vector<SavedCheckpoint> manifests_;
  SavedTrees trees_;
};

TEST_F(ScrubTest, SoundCheckpointsAreNotTold) {
  EXPECT_EQ(Damaged(), std::vector<std::string>());
  EXPECT_EQ(Scrub(true), std::vector<std::string>());
  EXPECT_EQ(JobsOnDisk(state_), std::vector<std::string>({"job"}));
}

TEST_F(ScrubTest, EachKindHasItsOwnFile) {
  int attempt = 10;
  for (const char* kind : {"lightgbm", "xgboost", "kernel"}) {
    const std::string dir = absl::StrCat("jobs/job/attempts/", ++attempt);
    fs::create_directories(state_ + "/" + dir);
    TreeCheckpoint trees;
    trees.kind = kind;
    trees.rounds = 5;
    trees.trees = "some rounds\n";
    ASSERT_TRUE(WriteTrees(state_, dir, trees).ok());
    EXPECT_EQ(Damaged(), std::vector<std::string>()) << kind;
    const std::string file = absl::StrCat(dir, "/checkpoint-5.", StateFileSuffix(kind));
    Flip(file, 3);
    EXPECT_EQ(Damaged().size(), 1u) << file;
    Flip(file, 3);
  }
}

TEST_F(ScrubTest, AFlippedByteIsFoundAndTheCheckpointBeforeIsTheNewest) {
  Flip("jobs/job/attempts/1/checkpoint-20.safetensors", 3);
  const std::vector<std::string> told = Scrub(/*resumes=*/true);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(absl::StartsWith(told[0],
                               "job job: jobs/job/attempts/1/checkpoint-20.safetensors is damaged"))
      << told[0];
  EXPECT_TRUE(absl::StrContains(told[0], "set aside"));
  std::vector<std::string> warnings;
  const auto found = FindCheckpoint(state_, manifests_[1].manifest, Layout(), Sample(0), warnings);
  ASSERT_TRUE(found.ok()) << testing::PrintToString(warnings);
  EXPECT_EQ(found->checkpoint.step, 10);
  EXPECT_EQ(warnings, std::vector<std::string>());  // it is not even looked at
  EXPECT_EQ(Scrub(true), std::vector<std::string>());
}

TEST_F(ScrubTest, OfAJobThatIsOverNothingIsChanged) {
  Flip(manifests_[0].manifest, 20);
  EXPECT_EQ(Scrub(/*resumes=*/false).size(), 1u);
  EXPECT_EQ(Scrub(/*resumes=*/false).size(), 1u);
  EXPECT_TRUE(fs::exists(state_ + "/" + manifests_[0].manifest));
}

TEST_F(ScrubTest, DamageIsToldOnce) {
  Flip(manifests_[0].manifest, 20);
  int told = 0;
  Scrubber scrubber(
      {state_}, [](const std::string&) { return false; }, [&told](const DamagedFile&) { ++told; });
  scrubber.RunOnce();
  scrubber.RunOnce();
  EXPECT_EQ(told, 1);
  Flip(manifests_[1].manifest, 20);
  scrubber.RunOnce();
  EXPECT_EQ(told, 2);
}

TEST_F(ScrubTest, DamagedTreesAreFound) {
  Flip("jobs/job/attempts/2/checkpoint-5.txt", 3);
  EXPECT_EQ(Damaged(), std::vector<std::string>({"jobs/job/attempts/2/checkpoint-5.txt"}));
  Flip("jobs/job/attempts/2/checkpoint-5.txt", 3);
  Flip(trees_.manifest, 20);
  EXPECT_EQ(Damaged(), std::vector<std::string>({trees_.manifest}));
}

TEST_F(ScrubTest, WhatARankHasJustRemovedIsNotDamaged) {
  fs::remove(state_ + "/jobs/job/attempts/1/checkpoint-20.safetensors");
  EXPECT_EQ(Damaged(), std::vector<std::string>());
}

TEST_F(ScrubTest, TheReaderIsStoppedBetweenFiles) {
  Flip("jobs/job/attempts/1/checkpoint-20.safetensors", 3);
  int asked = 0;
  const auto found = FindDamage(state_, "job", [&asked](int64_t bytes) {
    EXPECT_GT(bytes, 0);
    return ++asked < 1;
  });
  EXPECT_TRUE(found.empty());
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace traind
