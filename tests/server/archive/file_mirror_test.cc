#include "server/archive/file_mirror.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>

#include "common/base/durable_file.h"
#include "server/objects/s3_objects.h"
#include "tests/server/objects/test_bucket.h"

namespace traind {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

namespace fs = std::filesystem;

std::string NewFolder() {
  std::string folder = absl::StrCat(testing::TempDir(), "/mirror.XXXXXX");
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  return folder;
}

bool Within20Seconds(const std::function<bool()>& true_of) {
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (!true_of()) {
    if (absl::Now() > end) return false;
    absl::SleepFor(absl::Milliseconds(20));
  }
  return true;
}

// A state folder.
class State {
 public:
  State() : folder_(NewFolder()) {}
  const std::string& folder() const { return folder_; }
  std::string operator/(const std::string& path) const { return absl::StrCat(folder_, "/", path); }
  void Write(const std::string& path, const std::string& bytes) const {
    const std::string whole = *this / path;
    ASSERT_EQ(MakeDirs(whole.substr(0, whole.rfind('/'))), absl::OkStatus());
    ASSERT_EQ(WriteFileDurably(whole, bytes), absl::OkStatus());
  }
  void Link(const std::string& path, const std::string& target) const {
    unlink((*this / path).c_str());
    ASSERT_EQ(symlink(target.c_str(), (*this / path).c_str()), 0);
  }
  std::string Read(const std::string& path) const {
    const auto bytes = ReadFile(*this / path);
    return bytes.ok() ? *bytes : std::string(bytes.status().message());
  }
  bool Has(const std::string& path) const {
    std::error_code error;
    return fs::exists(fs::symlink_status(*this / path, error));
  }
  // A Job whose Prediction stands.
  void Publish(const std::string& job, int number, const std::string& rows) const {
    Write(absl::StrCat("jobs/", job, "/prediction-", number, "/predictions.csv"), rows);
    Write(absl::StrCat("jobs/", job, "/prediction-", number, "/manifest.json"), "{}");
    Link(absl::StrCat("jobs/", job, "/current"), absl::StrCat("prediction-", number));
  }

 private:
  const std::string folder_;
};

class FileMirrorTest : public testing::Test {
 protected:
  FileMirrorTest() : objects_(OpenObjects(store_, ObjectUse::kOwn).value()) {}
  std::unique_ptr<FileMirror> Mirror(const State& state) const {
    return std::make_unique<FileMirror>(objects_, state.folder(), &SystemClock());
  }
  std::vector<std::string> Keys() const {
    std::vector<std::string> keys;
    for (const char* const root : {"jobs/", "cache/", "uploads/"}) {
      const std::vector<ObjectInfo> objects = objects_->List(root).value();
      for (const ObjectInfo& object : objects) keys.push_back(object.key);
    }
    return keys;
  }

  const std::string store_ = NewFolder();
  const std::shared_ptr<const ObjectStore> objects_;
  const State one_, two_;
};

TEST_F(FileMirrorTest, FilesAndTheStandingPredictionReachAnotherMachine) {
  one_.Publish("j", 3, "1,2\n");
  one_.Write("cache/k.table", "columns");
  one_.Write("uploads/abc/rows é.csv", "a,b\n");
  // These stay.
  one_.Write("jobs/j/publish.lock", "");
  one_.Write("jobs/j/attempts/1/oof.npy.tmp-1", "half");
  one_.Write("jobs/j/attempts/1/rank0.log", "it grows");
  one_.Write("traind.db", "the archive's");
  const auto giver = Mirror(one_);
  ASSERT_EQ(giver->Give(), absl::OkStatus());
  EXPECT_THAT(Keys(), ElementsAre("jobs/j/current@link", "jobs/j/prediction-3/manifest.json",
                                  "jobs/j/prediction-3/predictions.csv", "cache/k.table",
                                  "uploads/abc/rows é.csv"));
  ASSERT_EQ(Mirror(two_)->Get(false), absl::OkStatus());
  EXPECT_EQ(two_.Read("jobs/j/current/predictions.csv"), "1,2\n");
  EXPECT_EQ(fs::read_symlink(two_ / "jobs/j/current"), "prediction-3");
  EXPECT_EQ(two_.Read("uploads/abc/rows é.csv"), "a,b\n");
}

TEST_F(FileMirrorTest, ALogGoesOnceItIsQuiet) {
  one_.Write("jobs/j/attempts/1/rank0.log", "done");
  const timespec old[2] = {{1000000000, 0}, {1000000000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, (one_ / "jobs/j/attempts/1/rank0.log").c_str(), old, 0), 0);
  ASSERT_EQ(Mirror(one_)->Give(), absl::OkStatus());
  EXPECT_THAT(Keys(), ElementsAre("jobs/j/attempts/1/rank0.log"));
}

TEST_F(FileMirrorTest, WhatChangesGoesAgainAndWhatIsRemovedGoes) {
  one_.Publish("j", 1, "first");
  one_.Write("jobs/j/attempts/1/checkpoint-1.safetensors", "old");
  const auto giver = Mirror(one_);
  ASSERT_EQ(giver->Give(), absl::OkStatus());
  one_.Publish("j", 2, "second");
  one_.Write("jobs/j/attempts/1/checkpoint-2.safetensors", "new");
  unlink((one_ / "jobs/j/attempts/1/checkpoint-1.safetensors").c_str());
  fs::remove_all(one_ / "jobs/j/prediction-1");
  ASSERT_EQ(giver->Give(), absl::OkStatus());
  EXPECT_THAT(Keys(), ElementsAre("jobs/j/attempts/1/checkpoint-2.safetensors",
                                  "jobs/j/current@link", "jobs/j/prediction-2/manifest.json",
                                  "jobs/j/prediction-2/predictions.csv"));
  EXPECT_EQ(objects_->Read("jobs/j/current@link").value(), "prediction-2");
}

// Of a folder that cannot be seen nothing is known.
TEST_F(FileMirrorTest, AFolderThatIsAwayTakesNothingFromTheStore) {
  one_.Publish("j", 1, "first");
  const auto giver = Mirror(one_);
  ASSERT_EQ(giver->Give(), absl::OkStatus());
  fs::rename(one_ / "jobs", one_ / "away");
  ASSERT_EQ(giver->Give(), absl::OkStatus());
  EXPECT_EQ(Keys().size(), 3u);
  // Nor does one that never had the files.
  ASSERT_EQ(Mirror(two_)->Give(), absl::OkStatus());
  EXPECT_EQ(Keys().size(), 3u);
}

TEST_F(FileMirrorTest, AnotherMachinesOldFilesAreReplacedByTheStores) {
  one_.Publish("j", 1, "store");
  two_.Publish("j", 1, "another");  // a folder's list has no digests, so the sizes differ
  two_.Write("jobs/j/prediction-7/predictions.csv", "x");
  two_.Link("jobs/j/current", "prediction-7");
  ASSERT_EQ(Mirror(one_)->Give(), absl::OkStatus());
  ASSERT_EQ(Mirror(two_)->Get(false), absl::OkStatus());
  EXPECT_EQ(two_.Read("jobs/j/current/predictions.csv"), "store");
}

TEST_F(FileMirrorTest, TheOwnFolderIsAsNewAsTheStore) {
  one_.Publish("j", 1, "first");
  one_.Write("jobs/j/end.json", "{}");
  ASSERT_EQ(Mirror(one_)->Give(), absl::OkStatus());
  // traind was killed before it gave these.
  one_.Publish("j", 2, "second");
  one_.Write("jobs/j/end.json", "{\"state\":1}");
  fs::remove(one_ / "jobs/j/prediction-1/manifest.json");
  const auto again = Mirror(one_);
  ASSERT_EQ(again->Get(true), absl::OkStatus());
  EXPECT_EQ(one_.Read("jobs/j/current/predictions.csv"), "second");
  EXPECT_EQ(one_.Read("jobs/j/end.json"), "{\"state\":1}");
  EXPECT_TRUE(one_.Has("jobs/j/prediction-1/manifest.json")) << "the store had it";
  ASSERT_EQ(again->Give(), absl::OkStatus());
  EXPECT_EQ(objects_->Read("jobs/j/current@link").value(), "prediction-2");
  EXPECT_EQ(objects_->Read("jobs/j/end.json").value(), "{\"state\":1}");
}

TEST_F(FileMirrorTest, KeysThatLeadElsewhereAreLeftAlone) {
  ASSERT_EQ(objects_->Write("jobs/j/current@link", "../../traind.db"), absl::OkStatus());
  ASSERT_EQ(objects_->Write("jobs/k/current@link", "/etc"), absl::OkStatus());
  ASSERT_EQ(objects_->Write("jobs/j/attempts/1/current@link", "prediction-1"), absl::OkStatus());
  ASSERT_EQ(objects_->Write("store/log/1", "x"), absl::OkStatus());
  ASSERT_EQ(Mirror(two_)->Get(false), absl::OkStatus());
  EXPECT_FALSE(two_.Has("jobs/j/current"));
  EXPECT_FALSE(two_.Has("jobs/k/current"));
  EXPECT_FALSE(two_.Has("store"));
  // Below an Attempt it is a file like others.
  EXPECT_EQ(two_.Read("jobs/j/attempts/1/current@link"), "prediction-1");
}

TEST_F(FileMirrorTest, AStandbyDropsWhatTheStoreDropped) {
  one_.Write("jobs/j/attempts/1/checkpoint-1.json", "old");
  const auto giver = Mirror(one_);
  const auto follower = Mirror(two_);
  ASSERT_EQ(giver->Give(), absl::OkStatus());
  two_.Write("jobs/own/mine", "stays");
  ASSERT_EQ(follower->Get(false), absl::OkStatus());
  EXPECT_TRUE(two_.Has("jobs/j/attempts/1/checkpoint-1.json"));
  unlink((one_ / "jobs/j/attempts/1/checkpoint-1.json").c_str());
  ASSERT_EQ(giver->Give(), absl::OkStatus());
  ASSERT_EQ(follower->Get(false), absl::OkStatus());
  EXPECT_FALSE(two_.Has("jobs/j/attempts/1/checkpoint-1.json"));
  EXPECT_TRUE(two_.Has("jobs/own/mine"));
}

TEST_F(FileMirrorTest, AStandbyFollowsAndAfterwardsGives) {
  const auto giver = Mirror(one_);
  ASSERT_EQ(giver->TakeOver(true), absl::OkStatus());
  const std::string large(9 << 20, 'x');
  one_.Write("jobs/j/attempts/1/checkpoint-1.safetensors", large);
  one_.Publish("j", 1, "rows");
  ASSERT_TRUE(Within20Seconds([&] { return Keys().size() == 4; })) << Keys().size();
  const auto follower = Mirror(two_);
  follower->Follow();
  ASSERT_TRUE(Within20Seconds([&] { return two_.Has("jobs/j/current"); }));
  EXPECT_EQ(two_.Read("jobs/j/attempts/1/checkpoint-1.safetensors").size(), large.size());
  // The last files of the first one come with its end, large ones and their link too.
  one_.Write("jobs/j/prediction-2/masks.zip", large);
  one_.Publish("j", 2, "more rows");
  ASSERT_EQ(giver->Finish(), absl::OkStatus());
  EXPECT_EQ(objects_->Read("jobs/j/current@link").value(), "prediction-2");
  ASSERT_EQ(follower->TakeOver(false), absl::OkStatus());
  EXPECT_EQ(two_.Read("jobs/j/current/predictions.csv"), "more rows");
  two_.Write("jobs/k/folds.npy", "new");
  EXPECT_TRUE(Within20Seconds([&] { return objects_->Read("jobs/k/folds.npy").ok(); }));
}

// A change of the database comes after the files that it tells of.
TEST_F(FileMirrorTest, FilesOfOneJobGoAtOnce) {
  one_.Publish("j", 1, "rows");
  one_.Publish("k", 1, "others");
  one_.Write("jobs/j/attempts/1/checkpoint-1.safetensors", std::string(9 << 20, 'x'));
  one_.Write("cache/k.table", "columns");
  const auto giver = Mirror(one_);
  giver->GiveJobs({"j", "gone"});
  EXPECT_THAT(Keys(), ElementsAre("jobs/j/current@link", "jobs/j/prediction-1/manifest.json",
                                  "jobs/j/prediction-1/predictions.csv", "cache/k.table"));
  // The link waits for a file for which nobody waits.
  one_.Write("jobs/j/prediction-2/masks.zip", std::string(9 << 20, 'x'));
  one_.Publish("j", 2, "more");
  giver->GiveJobs({"j"});
  EXPECT_EQ(objects_->Read("jobs/j/current@link").value(), "prediction-1");
  EXPECT_EQ(objects_->Read("jobs/j/prediction-2/predictions.csv").value(), "more");
}

// As above, where the store is a bucket.
class BucketMirrorTest : public testing::Test {
 protected:
  const TestBucket bucket_;
  const State one_, two_;
};

// Whoever waits keeps deadlines.
TEST_F(BucketMirrorTest, AStoreThatIsSilentIsNotWaitedForAgainUntilATurnHasGivenAll) {
  if (!bucket_.is_stand_in()) GTEST_SKIP() << "a real store makes no faults";
  const auto objects = OpenObjects(bucket_.place(), ObjectUse::kOwn).value();
  one_.Publish("j", 1, "first");
  FileMirror giver(objects, one_.folder(), &SystemClock());
  bucket_.Ask(R"({"slow": 60})");
  giver.GiveJobs({"j"});
  bucket_.Ask(R"({"slow": 0})");
  giver.GiveJobs({"j"});
  EXPECT_TRUE(absl::IsNotFound(objects->Read("jobs/j/current@link").status()));
  ASSERT_EQ(giver.Give(), absl::OkStatus());
  EXPECT_EQ(objects->Read("jobs/j/current@link").value(), "prediction-1");
  one_.Publish("j", 2, "second");
  giver.GiveJobs({"j"});
  EXPECT_EQ(objects->Read("jobs/j/current@link").value(), "prediction-2");
}

TEST_F(BucketMirrorTest, FilesGoThereAndBackWithTheirTimes) {
  const auto objects = OpenObjects(bucket_.place(), ObjectUse::kOwn).value();
  one_.Publish("j", 1, "store");
  const timespec old[2] = {{1000000000, 0}, {1000000000, 123456789}};
  ASSERT_EQ(utimensat(AT_FDCWD, (one_ / "jobs/j/prediction-1/predictions.csv").c_str(), old, 0), 0);
  two_.Publish("j", 1, "other");  // as many bytes
  FileMirror giver(objects, one_.folder(), &SystemClock());
  ASSERT_EQ(giver.Give(), absl::OkStatus());
  FileMirror getter(objects, two_.folder(), &SystemClock());
  ASSERT_EQ(getter.Get(false), absl::OkStatus());
  EXPECT_EQ(two_.Read("jobs/j/current/predictions.csv"), "store");
  struct stat about = {};
  ASSERT_EQ(stat((two_ / "jobs/j/prediction-1/predictions.csv").c_str(), &about), 0);
  EXPECT_EQ(about.st_mtim.tv_sec, 1000000000);
  EXPECT_EQ(about.st_mtim.tv_nsec, 123456789);
}

// The link does not arrive before what it leads to.
TEST_F(BucketMirrorTest, APredictionIsThereWholeOrNotAtAll) {
  if (!bucket_.is_stand_in()) GTEST_SKIP() << "a real store makes no faults";
  const auto objects = OpenObjects(bucket_.place(), ObjectUse::kOwn).value();
  one_.Publish("j", 1, "first");
  FileMirror giver(objects, one_.folder(), &SystemClock());
  ASSERT_EQ(giver.Give(), absl::OkStatus());
  one_.Publish("j", 2, "second");
  bucket_.Ask(R"({"away": true})");
  EXPECT_FALSE(giver.Give().ok());
  bucket_.Ask(R"({"away": false})");
  EXPECT_EQ(objects->Read("jobs/j/current@link").value(), "prediction-1");
  ASSERT_EQ(giver.Give(), absl::OkStatus());
  EXPECT_EQ(objects->Read("jobs/j/current@link").value(), "prediction-2");
}

}  // namespace
}  // namespace traind
