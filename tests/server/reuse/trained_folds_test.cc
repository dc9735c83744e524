#include "server/reuse/trained_folds.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/durable_file.h"

namespace traind {
namespace {

Task FoldOf(int fold, TaskState state, double epochs, double planned) {
  Task task;
  task.fold = fold;
  task.state = state;
  task.attempt = 10 + fold;
  task.epochs_planned = planned;
  Member member;
  member.fold = fold;
  member.attempt = task.attempt;
  member.complete = state == TaskState::kDone;
  member.epochs_done = epochs;
  task.member = member;
  return task;
}

Job JobOf(const std::string& id, std::vector<Task> folds) {
  Job job;
  job.id = id;
  job.tasks.resize(1);
  job.tasks[0].kind = TaskKind::kPrepare;
  for (Task& task : folds) job.tasks.push_back(std::move(task));
  return job;
}

Spec Wanted(int folds, int epochs) {
  Spec spec;
  spec.folds = folds;
  spec.epochs = epochs;
  return spec;
}

TEST(ChooseFoldsTest, OnlyFoldsThatReachedTheirPlanOrRanOutOfPatienceAreWhole) {
  const Job job =
      JobOf("a", {FoldOf(0, TaskState::kDone, 20, 20), FoldOf(1, TaskState::kDone, 9, 20),
                  FoldOf(2, TaskState::kPartial, 15, 20),
                  FoldOf(3, TaskState::kDone, 6, 6)});  // its Plan was cut
  const auto folds = ChooseFolds({job}, Wanted(4, 20));
  ASSERT_EQ(folds.size(), 4u);
  EXPECT_TRUE(folds[0].whole);
  EXPECT_TRUE(folds[1].whole);
  EXPECT_FALSE(folds[2].whole);
  EXPECT_FALSE(folds[3].whole);
}

TEST(ChooseFoldsTest, AWholeFoldGoesBeforeANewerPartAndMoreEpochsBeforeFewer) {
  const Job newer = JobOf(
      "newer", {FoldOf(0, TaskState::kPartial, 15, 20), FoldOf(1, TaskState::kPartial, 3, 20)});
  const Job older =
      JobOf("older", {FoldOf(0, TaskState::kDone, 20, 20), FoldOf(1, TaskState::kPartial, 8, 20)});
  const auto folds = ChooseFolds({newer, older}, Wanted(2, 20));
  ASSERT_EQ(folds.size(), 2u);
  EXPECT_EQ(folds[0].job, "older");
  EXPECT_EQ(folds[1].job, "older");
}

TEST(ChooseFoldsTest, FullyTrainedExtraSeedsAreReusedUpToTheRequestedNumber) {
  Task whole = FoldOf(0, TaskState::kDone, 20, 20), part = FoldOf(1, TaskState::kPartial, 15, 20),
       third = FoldOf(0, TaskState::kDone, 9, 20);
  whole.seed = part.seed = 1;
  third.seed = 2;
  Job job =
      JobOf("a", {FoldOf(0, TaskState::kDone, 20, 20), FoldOf(1, TaskState::kPartial, 5, 20)});
  for (const Task* task : {&whole, &part, &third}) job.tasks.push_back(*task);
  Spec wanted = Wanted(2, 20);
  EXPECT_EQ(ChooseFolds({job}, wanted).size(), 2u);
  wanted.seeds = 2;
  const auto two = ChooseFolds({job}, wanted);
  ASSERT_EQ(two.size(), 3u);
  EXPECT_EQ(two[2].fold, 0);
  EXPECT_EQ(two[2].seed, 1);
  EXPECT_TRUE(two[2].whole);
  wanted.seeds = 3;
  EXPECT_EQ(ChooseFolds({job}, wanted).size(), 4u);
}

TEST(ChooseFoldsTest, ATrialOfASearchIsReusedWithEqualSettings) {
  Job job = JobOf("a", {FoldOf(0, TaskState::kDone, 20, 20), FoldOf(0, TaskState::kDone, 20, 20)});
  job.tasks[2].trial = 1;
  Spec wanted = Wanted(1, 20);
  EXPECT_EQ(ChooseFolds({job}, wanted).size(), 1u) << "without a search, the first trial's";
  job.spec.trials.resize(2);
  wanted.trials.resize(2);
  wanted.trials[1].epochs = 20;
  job.spec.trials[1].settings = std::make_shared<const Settings>(Settings{{"train.ema", "0.9"}});
  EXPECT_EQ(ChooseFolds({job}, wanted).size(), 1u) << "its settings are not drawn yet";
  wanted.trials[1].settings = std::make_shared<const Settings>(Settings{{"train.ema", "0.5"}});
  EXPECT_EQ(ChooseFolds({job}, wanted).size(), 1u);
  wanted.trials[1].settings = std::make_shared<const Settings>(*job.spec.trials[1].settings);
  EXPECT_EQ(ChooseFolds({job}, wanted).size(), 2u);
}

TEST(ChooseFoldsTest, MoreEpochsThanTheSourceHadAreTrained) {
  const Job job = JobOf("a", {FoldOf(0, TaskState::kDone, 12, 12)});
  EXPECT_FALSE(ChooseFolds({job}, Wanted(1, 20))[0].whole);
}

// Shortened epochs see only a part of the rows, so their number overstates the training.
TEST(ChooseFoldsTest, AFoldOfShortenedEpochsIsGoneOnFromWhereThatIsAskedFor) {
  Task task = FoldOf(0, TaskState::kDone, 20, 20);
  task.row_share = 0.4;
  Spec wanted = Wanted(1, 20);
  EXPECT_TRUE(ChooseFolds({JobOf("a", {task})}, wanted).empty());
  wanted.from = "a";
  const auto folds = ChooseFolds({JobOf("a", {task})}, wanted);
  ASSERT_EQ(folds.size(), 1u);
  EXPECT_FALSE(folds[0].whole);
  EXPECT_EQ(folds[0].row_share, 0.4);
}

TEST(ChooseFoldsTest, AFoldWithoutPredictionsOrCheckpointIsOfNoUse) {
  Task task;
  task.fold = 0;
  task.state = TaskState::kDropped;
  EXPECT_TRUE(ChooseFolds({JobOf("a", {task})}, Wanted(1, 20)).empty());
}

class TakeOverTest : public testing::Test {
 protected:
  TakeOverTest() {
    state_ = testing::TempDir() + "take_over_" +
             testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(state_);
    const std::string attempt = state_ + "/jobs/old/attempts/10";
    EXPECT_TRUE(MakeDirs(attempt).ok());
    Write("jobs/old/attempts/10/oof.npy", "oof");
    Write("jobs/old/attempts/10/test.npy", "test");
    Write("jobs/old/attempts/10/checkpoint-5.safetensors", "tensors");
    Write("jobs/old/attempts/10/checkpoint-5.json", "manifest");
    Write("jobs/old/attempts/10/model.json", "model");
    fold_.job = "old";
    fold_.attempt = 10;
    fold_.whole = true;
    fold_.member.emplace();
    fold_.member->oof = "attempts/10/oof.npy";
    fold_.member->oof_sha256 = Sha256Hex("oof");
    fold_.member->test = "attempts/10/test.npy";
    fold_.member->test_sha256 = Sha256Hex("test");
    fold_.checkpoint.emplace();
    fold_.checkpoint->manifest = "jobs/old/attempts/10/checkpoint-5.json";
    fold_.checkpoint->sha256 = Sha256Hex("tensors");
  }
  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(WriteFileDurably(state_ + "/" + path, text).ok());
  }
  std::string Read(const std::string& path) {
    return ReadFile(state_ + "/" + path).value_or("absent");
  }

  std::string state_;
  TrainedFold fold_;
};

TEST_F(TakeOverTest, PredictionsOutliveTheFolderOfTheirJob) {
  const auto taken = LinkFolds(state_, "new", {fold_});
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_TRUE(taken[0].whole);
  EXPECT_FALSE(taken[0].checkpoint);
  EXPECT_EQ(taken[0].member->oof, "reused/10/oof.npy");
  std::filesystem::remove_all(state_ + "/jobs/old");
  EXPECT_EQ(Read("jobs/new/reused/10/oof.npy"), "oof");
  EXPECT_EQ(Read("jobs/new/reused/10/test.npy"), "test");
  // The file that predicts later rows is linked, too.
  EXPECT_EQ(Read("jobs/new/reused/10/model.json"), "model");
  EXPECT_EQ(Read("jobs/new/reused/10/checkpoint-5.json"), "manifest");
}

TEST_F(TakeOverTest, TakingOverTwiceIsTheSame) {
  LinkFolds(state_, "new", {fold_});
  const auto taken = LinkFolds(state_, "new", {fold_});
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(Read("jobs/new/reused/10/oof.npy"), "oof");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(state_ + "/jobs/new/reused/10")) {
    files += entry.is_regular_file();
  }
  EXPECT_EQ(files, 5);
}

TEST_F(TakeOverTest, AFoldThatWasTakenOverIsTakenOverAgainWithItsModel) {
  std::vector<TrainedFold> taken = LinkFolds(state_, "second", {fold_});
  ASSERT_EQ(taken.size(), 1u);
  taken[0].job = "second";  // whose record of the fold names no checkpoint
  Write("jobs/second/reused/10/checkpoint-5.json.tmp", "left behind");
  std::filesystem::remove_all(state_ + "/jobs/old");
  ASSERT_EQ(LinkFolds(state_, "third", taken).size(), 1u);
  EXPECT_EQ(Read("jobs/third/reused/10/oof.npy"), "oof");
  EXPECT_EQ(Read("jobs/third/reused/10/model.json"), "model");
  EXPECT_EQ(Read("jobs/third/reused/10/checkpoint-5.safetensors"), "tensors");
  EXPECT_EQ(Read("jobs/third/reused/10/checkpoint-5.json"), "manifest");
  EXPECT_EQ(Read("jobs/third/reused/10/checkpoint-5.json.tmp"), "absent");
}

TEST_F(TakeOverTest, AFoldBegunTakesItsCheckpointWithBothFiles) {
  fold_.whole = false;
  const auto taken = LinkFolds(state_, "new", {fold_});
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].checkpoint->manifest, "jobs/new/reused/10/checkpoint-5.json");
  EXPECT_EQ(Read("jobs/new/reused/10/checkpoint-5.safetensors"), "tensors");
  EXPECT_EQ(Read("jobs/new/reused/10/checkpoint-5.json"), "manifest");
}

TEST_F(TakeOverTest, DamagedPredictionsLeaveTheCheckpoint) {
  Write("jobs/old/attempts/10/test.npy", "damaged");
  const auto taken = LinkFolds(state_, "new", {fold_});
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_FALSE(taken[0].whole);
  EXPECT_FALSE(taken[0].member);
  EXPECT_TRUE(taken[0].checkpoint);
}

TEST_F(TakeOverTest, WhatIsGoneIsAMiss) {
  std::filesystem::remove_all(state_ + "/jobs/old");
  EXPECT_TRUE(LinkFolds(state_, "new", {fold_}).empty());
}

}  // namespace
}  // namespace traind
