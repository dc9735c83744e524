#include "server/loop/found_on_disk.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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
  // Another content of the same size.
  void Damage(int64_t attempt, int64_t rounds) const { WriteData(attempt, rounds, "seert"); }
  void WriteData(int64_t attempt, int64_t rounds, const std::string& trees) const {
    std::ofstream(
        absl::StrCat(state_, "/", AttemptDir("job", attempt), "/checkpoint-", rounds, ".txt"))
        << trees;
  }
  // Returns the Attempts and steps of the checkpoints that are found without reading their data;
  // step 0: that the Attempt's are to be read.
  std::vector<std::pair<int64_t, int64_t>> FoundFor(const Job& job) const {
    std::vector<Event> events;
    std::vector<UnreadCheckpoints> unread;
    AddCheckpoints(state_, job, &events, &unread);
    std::vector<std::pair<int64_t, int64_t>> found;
    for (const UnreadCheckpoints& attempt : unread) {
      EXPECT_EQ(attempt.job, job.id);
      found.emplace_back(attempt.attempt, 0);
    }
    for (const Event& event : events) {
      const auto& of = std::get<CheckpointFound>(event);
      found.emplace_back(of.attempt, of.checkpoint.step);
    }
    return found;
  }
  // Starts a loop on the store. Returns the first fold's checkpoint once it is the Attempt's;
  // nullopt: it was not in good time.
  std::optional<Checkpoint> StartUntilKnown(Store& store, int64_t attempt) const {
    NoWorkers gateway;
    LoopOptions options;
    options.state_dir = state_;
    const auto loop = *ControlLoop::Create(options, &store, &SystemClock());
    loop->Start(&gateway);
    const auto known = [&](const std::shared_ptr<const Job>& job) -> std::optional<Checkpoint> {
      const auto& checkpoint = job->tasks[1].checkpoint;
      if (!checkpoint || checkpoint->attempt != attempt) return std::nullopt;
      return *checkpoint;
    };
    const absl::Time give_up = absl::Now() + absl::Seconds(30);
    JobViews::View view = loop->views().Find("job");
    while (!known(view.job) && absl::Now() < give_up) {
      view = loop->views().Wait("job", view.change, absl::Seconds(1));
    }
    return known(view.job);
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

TEST_F(FoundOnDiskTest, WhatTraindHasHeardOfIsNotFound) {
  Job job = Started(NewJob("job"), /*fold=*/0, /*attempt=*/3);
  WriteCheckpoint(3, 40);
  Fold(job, 0).checkpoint = CheckpointOf(3, 0, 40);
  EXPECT_EQ(FoundFor(job), Found{});
  Fold(job, 0).checkpoint = CheckpointOf(3, 0, 30);
  EXPECT_EQ(FoundFor(job), (Found{{3, 40}}));
}

TEST_F(FoundOnDiskTest, TheDataAreNotReadAndTheirSizeHasToFit) {
  const Job job = Started(NewJob("job"), /*fold=*/0, /*attempt=*/3);
  for (const int64_t rounds : {20, 40, 60, 80}) WriteCheckpoint(3, rounds);
  Damage(3, 80);
  EXPECT_EQ(FoundFor(job), (Found{{3, 80}}));
  WriteData(3, 80, "tree");
  EXPECT_EQ(FoundFor(job), (Found{{3, 60}}));
  std::filesystem::remove(absl::StrCat(state_, "/", AttemptDir("job", 3), "/checkpoint-60.txt"));
  EXPECT_EQ(FoundFor(job), (Found{{3, 40}}));
}

// A Rank that cannot read what it is to resume from does not look into another Attempt's folder.
TEST_F(FoundOnDiskTest, WhatWouldReplaceAnEarlierAttemptsIsReadFirst) {
  Job job = Started(NewJob("job"), /*fold=*/0, /*attempt=*/3);
  Fold(job, 0).checkpoint = CheckpointOf(2, 0, 90);
  EXPECT_EQ(FoundFor(job), Found{});
  for (const int64_t rounds : {20, 40}) WriteCheckpoint(3, rounds);
  EXPECT_EQ(FoundFor(job), (Found{{3, 0}}));
  Damage(3, 40);
  const auto sound = ReadCheckpoints(state_, {"job", 3});
  ASSERT_TRUE(sound.has_value());
  EXPECT_EQ(sound->attempt, 3);
  EXPECT_EQ(sound->checkpoint.step, 20);
  Damage(3, 20);
  EXPECT_FALSE(ReadCheckpoints(state_, {"job", 3}).has_value());
}

TEST_F(FoundOnDiskTest, AStartTakesWhatNobodyHasToldOf) {
  MemoryStore store;
  Job job = Started(NewJob("job"), /*fold=*/0, /*attempt=*/3);
  job.deadline = absl::Now() + absl::Hours(1);
  ASSERT_EQ(store.Commit(Change({job})), absl::OkStatus());
  WriteCheckpoint(3, 40);
  const auto known = StartUntilKnown(store, 3);
  ASSERT_TRUE(known.has_value());
  EXPECT_EQ(known->step, 40);
  EXPECT_EQ(known->manifest, AttemptDir("job", 3) + "/checkpoint-40.json");
}

TEST_F(FoundOnDiskTest, AStartReadsWhatWouldReplaceAnEarlierAttempts) {
  MemoryStore store;
  Job job = Started(NewJob("job"), /*fold=*/0, /*attempt=*/2);
  job.deadline = absl::Now() + absl::Hours(1);
  ASSERT_EQ(store.Commit(Change({job})), absl::OkStatus());
  job = Next(job);
  Fold(job, 0).checkpoint = CheckpointOf(2, 0, 90);
  Mutations saved = Change({job});
  saved.checkpoints = {{"job", CheckpointOf(2, 0, 90)}};
  ASSERT_EQ(store.Commit(saved), absl::OkStatus());
  job.attempts[0].ended_at = kStart + absl::Seconds(2);
  job.attempts[0].end_reason = AttemptEndReason::kWorkerLost;
  job = Started(job, /*fold=*/0, /*attempt=*/3);
  ASSERT_EQ(store.Commit(Change({job})), absl::OkStatus());
  for (const int64_t rounds : {20, 40}) WriteCheckpoint(3, rounds);
  Damage(3, 40);
  const auto known = StartUntilKnown(store, 3);
  ASSERT_TRUE(known.has_value());
  EXPECT_EQ(known->step, 20);
}

}  // namespace
}  // namespace traind
