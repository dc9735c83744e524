#include "server/loop/found_on_disk.h"

#include <absl/time/clock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/job_layout.h"
#include "server/loop/control_loop.h"
#include "server/store/memory_store.h"
#include "tests/contract/stored_jobs.h"
#include "tests/server/loop/no_workers.h"
#include "worker/trees/tree_checkpoint.h"

namespace traind {
namespace {

class FoundOnDiskTest : public testing::Test {
 protected:
  FoundOnDiskTest() : state_(testing::TempDir() + "/found_on_disk") {
    std::filesystem::remove_all(state_);
  }

  // As a Rank does.
  void WriteCheckpoint(int64_t attempt, int64_t rounds) const {
    TreeCheckpoint checkpoint;
    checkpoint.kind = "lightgbm";
    checkpoint.rounds = rounds;
    checkpoint.trees = "trees";
    const std::string folder = AttemptDir("job", attempt);
    std::filesystem::create_directories(state_ + "/" + folder);
    ASSERT_TRUE(WriteTrees(state_, folder, checkpoint).ok());
  }
  // Returns the Attempts and steps of the checkpoints that are found.
  std::vector<std::pair<int64_t, int64_t>> FoundFor(const Job& job) const {
    std::vector<Event> events;
    AddCheckpoints(state_, job, &events);
    std::vector<std::pair<int64_t, int64_t>> found;
    for (const Event& event : events) {
      const auto& of = std::get<CheckpointFound>(event);
      found.emplace_back(of.attempt, of.checkpoint.step);
    }
    return found;
  }

  using Found = std::vector<std::pair<int64_t, int64_t>>;
  const std::string state_;
};

TEST_F(FoundOnDiskTest, OnlyAttemptsThatTrainAreLookedAt) {
  const Job job = Started(Started(NewJob("job", 3), /*fold=*/0, /*attempt=*/3), 2, 5);
  WriteCheckpoint(3, 40);
  WriteCheckpoint(4, 60);
  EXPECT_EQ(FoundFor(job), (Found{{3, 40}}));
  WriteCheckpoint(5, 20);
  EXPECT_EQ(FoundFor(job), (Found{{3, 40}, {5, 20}}));
  Job over = job;
  over.attempts[0].ended_at = kStart;
  EXPECT_EQ(FoundFor(over), (Found{{5, 20}}));
}

TEST_F(FoundOnDiskTest, WhatTraindHasHeardOfIsNotFoundAndAnEarlierAttemptsIsNoMeasure) {
  Job job = Started(NewJob("job"), /*fold=*/0, /*attempt=*/3);
  WriteCheckpoint(3, 40);
  Fold(job, 0).checkpoint = CheckpointOf(3, 0, 40);
  EXPECT_EQ(FoundFor(job), Found{});
  Fold(job, 0).checkpoint = CheckpointOf(3, 0, 30);
  EXPECT_EQ(FoundFor(job), (Found{{3, 40}}));
  Fold(job, 0).checkpoint = CheckpointOf(2, 0, 90);
  EXPECT_EQ(FoundFor(job), (Found{{3, 40}}));
}

TEST_F(FoundOnDiskTest, AStartTakesWhatNobodyHasToldOf) {
  MemoryStore store;
  Job job = Started(NewJob("job"), /*fold=*/0, /*attempt=*/3);
  job.deadline = absl::Now() + absl::Hours(1);
  ASSERT_EQ(store.Commit(Change({job})), absl::OkStatus());
  WriteCheckpoint(3, 40);
  NoWorkers gateway;
  LoopOptions options;
  options.state_dir = state_;
  const auto loop = *ControlLoop::Create(options, &store, &SystemClock());
  loop->Start(&gateway);
  const absl::Time give_up = absl::Now() + absl::Seconds(30);
  JobViews::View view = loop->views().Find("job");
  while (!view.job->tasks[1].checkpoint && absl::Now() < give_up) {
    view = loop->views().Wait("job", view.change, absl::Seconds(1));
  }
  ASSERT_TRUE(view.job->tasks[1].checkpoint.has_value());
  EXPECT_EQ(view.job->tasks[1].checkpoint->step, 40);
  EXPECT_EQ(view.job->tasks[1].checkpoint->manifest, AttemptDir("job", 3) + "/checkpoint-40.json");
}

}  // namespace
}  // namespace traind
