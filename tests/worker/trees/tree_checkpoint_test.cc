// Checkpoints of trees: sound ones are read, damaged ones are passed over.
#include "worker/trees/tree_checkpoint.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "tests/worker/fixture/fold_fixture.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TreeCheckpointTest : public testing::Test {
 protected:
  TreeCheckpointTest() : state_(NewStateDir()) { EXPECT_TRUE(MakeDirs(state_ + "/a").ok()); }

  TreeCheckpoint At(int64_t rounds) const {
    TreeCheckpoint c;
    c.job = "job";
    c.attempt = 4;
    c.fold = 1;
    c.seed = std::numeric_limits<uint64_t>::max();
    c.table_sha256 = "t";
    c.kind = "lightgbm";
    c.rounds = rounds;
    c.epochs = 2;
    c.rounds_in_epoch = 3;
    c.epoch = 2.25;
    c.has_best = true;
    c.best_rounds = rounds - 1;
    c.best_metric = std::numeric_limits<double>::quiet_NaN();
    c.trees = absl::StrCat("tree ", rounds);
    return c;
  }
  std::string Write(int64_t rounds) {
    const auto saved = WriteTrees(state_, "a", At(rounds));
    EXPECT_TRUE(saved.ok()) << saved.status();
    return saved->manifest;
  }

  const std::string state_;
};

TEST_F(TreeCheckpointTest, ComesBackAsItWasWritten) {
  const std::string manifest = Write(20);
  const auto read = ReadTrees(state_, manifest, At(0));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->rounds, 20);
  EXPECT_EQ(read->epochs, 2);
  EXPECT_EQ(read->rounds_in_epoch, 3);
  EXPECT_EQ(read->best_rounds, 19);
  EXPECT_TRUE(read->best_metric != read->best_metric);
  EXPECT_EQ(read->trees, "tree 20");
  EXPECT_TRUE(HasTrees(state_, "a"));
  EXPECT_FALSE(HasTrees(state_, "b"));
}

TEST_F(TreeCheckpointTest, AKernelsFileIsNotTakenForThatOfANetwork) {
  TreeCheckpoint kernel = At(20);
  kernel.kind = "kernel";
  ASSERT_TRUE(WriteTrees(state_, "a", kernel).ok());
  EXPECT_TRUE(HasTrees(state_, "a"));
  ASSERT_TRUE(MakeDirs(state_ + "/network").ok());
  ASSERT_TRUE(WriteFileDurably(state_ + "/network/checkpoint-20.safetensors", "tensors").ok());
  ASSERT_TRUE(WriteFileDurably(state_ + "/network/checkpoint-20.json", R"({"step": 20})").ok());
  EXPECT_FALSE(HasTrees(state_, "network"));
}

TEST_F(TreeCheckpointTest, AnotherTableFoldSeedOrModelIsRefused) {
  const std::string manifest = Write(20);
  for (int what = 0; what < 4; ++what) {
    TreeCheckpoint expected = At(0);
    if (what == 0) expected.table_sha256 = "u";
    if (what == 1) expected.fold = 0;
    if (what == 2) expected.seed = 1;
    if (what == 3) expected.kind = "xgboost";
    EXPECT_TRUE(absl::IsFailedPrecondition(ReadTrees(state_, manifest, expected).status())) << what;
  }
}

TEST_F(TreeCheckpointTest, ADamagedOneIsPassedOverForTheOneBefore) {
  Write(20);
  const std::string manifest = Write(40);
  ASSERT_TRUE(WriteFileDurably(state_ + "/a/checkpoint-40.txt", "tree 41").ok());
  std::vector<std::string> warnings;
  auto found = FindTrees(state_, manifest, At(0), warnings);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->rounds, 20);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("damaged")));
  // Every byte of a manifest counts.
  ASSERT_TRUE(
      WriteFileDurably(state_ + "/" + manifest, "{\"sha256\":\"0\",\"trees\":\n{}\n}\n").ok());
  found = NewestTrees(state_, "a", At(0), warnings);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->rounds, 20);
}

TEST_F(TreeCheckpointTest, WithoutASoundOneThereIsNone) {
  std::vector<std::string> warnings;
  EXPECT_TRUE(absl::IsNotFound(FindTrees(state_, "a/none.json", At(0), warnings).status()));
}

TEST_F(TreeCheckpointTest, TheNewestIsUsedAlsoWhereAnOlderOneIsNamed) {
  const std::string named = Write(20);
  for (const int64_t rounds : {40, 60}) Write(rounds);
  PruneTrees(state_, "a", 2);
  std::vector<std::string> warnings;
  const auto found = FindTrees(state_, named, At(0), warnings);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->rounds, 60);
  EXPECT_TRUE(warnings.empty());
}

TEST_F(TreeCheckpointTest, OldOnesAreRemoved) {
  for (const int64_t rounds : {9, 20, 100}) Write(rounds);
  PruneTrees(state_, "a", 2);
  EXPECT_NE(access((state_ + "/a/checkpoint-9.json").c_str(), F_OK), 0);
  EXPECT_NE(access((state_ + "/a/checkpoint-9.txt").c_str(), F_OK), 0);
  EXPECT_EQ(access((state_ + "/a/checkpoint-20.txt").c_str(), F_OK), 0);
}

}  // namespace
}  // namespace traind
