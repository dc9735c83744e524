// A program's fold that goes on in another state folder.
#include "worker/program/travelling_fold.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/base/durable_file.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

constexpr char kJob[] = "j";

// One Worker's state folder, and the fold in it.
class Place {
 public:
  explicit Place(int64_t attempt) : own_{0, 0, attempt} {
    state_ = testing::TempDir() + "/fold-XXXXXX";
    EXPECT_NE(mkdtemp(state_.data()), nullptr);
    fs::create_directories(Dir());
  }
  ~Place() { fs::remove_all(state_); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  std::string Dir() const { return state_ + "/jobs/j/program/fold-0"; }
  std::string PackPath() const { return state_ + "/" + ProgramPackPath(kJob, own_); }
  void Next(int64_t attempt) { own_.attempt = attempt; }
  TravellingFold Fold() const { return {state_, kJob, own_}; }
  KeptCheckpoints Kept() const { return {Dir(), {"*.pt"}}; }
  void Write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(Dir() + "/" + name).parent_path());
    std::ofstream(Dir() + "/" + name) << text;
  }
  std::string Text(const std::string& name) const {
    return ReadFile(Dir() + "/" + name).value_or("none");
  }
  // What an Attempt does that has trained for a while.
  void Train(const std::string& text) const {
    Write("work/model.pt", text);
    Write("work/log.txt", "of no use elsewhere");
    Write("checkpoints/traind-00000003/state", "helper " + text);
    Write("tries", "2");
    ASSERT_TRUE(Fold().NoteAttempt().ok());
    ASSERT_TRUE(Kept().Keep(absl::Now() + absl::Seconds(1)));
    ASSERT_TRUE(Fold().Pack(Kept()).ok());
  }
  void Bring(const Place& from) const {
    fs::copy_file(from.PackPath(), state_ + "/" + ProgramPackPath(kJob, from.own_));
  }
  int64_t Take() const {
    const auto taken = Fold().Take();
    EXPECT_TRUE(taken.ok()) << taken.status();
    return taken.value_or(-1);
  }

 private:
  std::string state_;
  ProgramPack own_;
};

TEST(TravellingFoldTest, ItGoesOnInAnEmptyFolderWithWhatWasKept) {
  const Place first(4), second(5);
  first.Train("whole");
  second.Bring(first);
  EXPECT_EQ(second.Take(), 4);
  EXPECT_EQ(second.Text("tries"), "2");
  EXPECT_EQ(second.Text("checkpoints/traind-00000003/state"), "helper whole");
  EXPECT_EQ(second.Text("work/model.pt"), "none") << "the program's folder is made first";
  second.Write("work/train.py", "code");
  ASSERT_TRUE(second.Fold().PutBack(second.Kept()).ok());
  EXPECT_EQ(second.Text("work/model.pt"), "whole");
  EXPECT_EQ(second.Text("work/train.py"), "code");
  EXPECT_EQ(second.Text("work/log.txt"), "none");
  // Only once: what the program writes now is newer.
  second.Write("work/model.pt", "newer");
  ASSERT_TRUE(second.Fold().PutBack(second.Kept()).ok());
  EXPECT_EQ(second.Text("work/model.pt"), "newer");
}

TEST(TravellingFoldTest, WhatAnEarlierAttemptLeftHereIsReplaced) {
  const Place first(4);
  Place second(3);
  second.Train("old");
  first.Train("new");
  second.Next(5);
  second.Bring(first);
  second.Write("out/answer.csv", "old");
  second.Write("torn/work/model.pt", "old");
  EXPECT_EQ(second.Take(), 4);
  EXPECT_EQ(second.Text("out/answer.csv"), "none");
  EXPECT_EQ(second.Text("torn/work/model.pt"), "none");
  EXPECT_EQ(second.Text("work/log.txt"), "none");
  ASSERT_TRUE(second.Fold().PutBack(second.Kept()).ok());
  EXPECT_EQ(second.Text("work/model.pt"), "new");
}

TEST(TravellingFoldTest, AnOlderPackOrItsOwnChangesNothing) {
  const Place first(4);
  Place second(5);
  first.Train("older");
  second.Train("own");
  second.Bring(first);
  second.Next(6);
  EXPECT_EQ(second.Take(), 0);
  EXPECT_EQ(second.Text("work/model.pt"), "own");
  EXPECT_EQ(second.Text("work/log.txt"), "of no use elsewhere");
}

TEST(TravellingFoldTest, AStartThatDiedMeanwhileLosesNothing) {
  const Place first(4), second(5);
  first.Train("whole");
  // Between the moves.
  fs::create_directories(second.Dir() + "/taking");
  fs::rename(first.Dir() + "/kept-1", second.Dir() + "/kept-1");
  second.Write("taking/tries", "2");
  second.Write("taking/attempt", "4");
  second.Write("taking/put-back", "");
  EXPECT_EQ(second.Take(), 4);
  EXPECT_EQ(second.Text("tries"), "2");
  ASSERT_TRUE(second.Fold().PutBack(second.Kept()).ok());
  EXPECT_EQ(second.Text("work/model.pt"), "whole");
  // Before anything was moved.
  const Place third(6);
  third.Write("brought-4/tries", "7");
  third.Write("work/model.pt", "old");
  EXPECT_EQ(third.Take(), 4);
  EXPECT_EQ(third.Text("tries"), "7");
  EXPECT_EQ(third.Text("work/model.pt"), "none");
}

TEST(TravellingFoldTest, BytesThatAreNoPackAreToldAndTheFolderStays) {
  const Place place(5);
  place.Write("work/model.pt", "own");
  std::ofstream(place.Dir() + "-4.pack") << "no pack";
  EXPECT_FALSE(place.Fold().Take().ok());
  EXPECT_EQ(place.Text("work/model.pt"), "own");
}

TEST(TravellingFoldTest, OnlyNewCheckpointsArePackedAndOnlyTheLastPackStays) {
  Place place(4);
  TravellingFold fold = place.Fold();
  ASSERT_TRUE(fold.Pack(place.Kept()).ok());
  EXPECT_FALSE(fs::exists(place.PackPath())) << "there is nothing to resume from";
  place.Train("one");
  ASSERT_TRUE(fold.Pack(place.Kept()).ok());
  const std::string first = place.PackPath();
  fs::remove(first);
  ASSERT_TRUE(fold.Pack(place.Kept()).ok());
  EXPECT_FALSE(fs::exists(first)) << "nothing is new";
  place.Write("checkpoints/traind-00000004/state", "next");
  ASSERT_TRUE(fold.Pack(place.Kept()).ok());
  EXPECT_TRUE(fs::exists(first));
  place.Next(9);
  ASSERT_TRUE(place.Fold().Pack(place.Kept()).ok());
  EXPECT_FALSE(fs::exists(first));
  place.Fold().RemovePacks();
  EXPECT_FALSE(fs::exists(place.PackPath()));
}

}  // namespace
}  // namespace traind
