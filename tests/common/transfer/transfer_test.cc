#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "common/base/durable_file.h"
#include "common/transfer/incoming_file.h"
#include "common/transfer/program_pack.h"
#include "common/transfer/state_path.h"

namespace traind {
namespace {

constexpr char kJob[] = "digits-abc123";

std::string NewFolder() {
  std::string folder = absl::StrCat(testing::TempDir(), "/transfer.XXXXXX");
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  return folder;
}

bool ToTraind(const std::string& path) { return Travels(path, kJob, Direction::kToTraind); }
bool ToWorker(const std::string& path) { return Travels(path, kJob, Direction::kToWorker); }

TEST(StatePathTest, FilesOfTheJobAndOfTheCacheTravel) {
  for (const char* path :
       {"jobs/digits-abc123/folds.npy", "jobs/digits-abc123/samples.json",
        "jobs/digits-abc123/predictions.json", "jobs/digits-abc123/tokenizer-3.model",
        "jobs/digits-abc123/floor/test.npy", "jobs/digits-abc123/attempts/17/oof.npy",
        "jobs/digits-abc123/attempts/17/rank0.log", "cache/0a1b.table", "cache/0a1b.images",
        "cache/0a1b.volumes", "cache/0a1b.pt", "cache/0a1b.safetensors",
        "jobs/digits-abc123/program/fold-0-12.pack",
        "jobs/digits-abc123/program/trial-2-fold-0-12.pack"}) {
    EXPECT_TRUE(ToTraind(path)) << path;
    EXPECT_TRUE(ToWorker(path)) << path;
  }
}

TEST(StatePathTest, WhatAnotherJobHasTrainedGoesToWorkersAlone) {
  EXPECT_TRUE(ToWorker("jobs/digits-abc123/prediction-3/manifest.json"));
  EXPECT_FALSE(ToTraind("jobs/digits-abc123/prediction-3/manifest.json"));
  EXPECT_FALSE(ToWorker("jobs/digits-abc123/prediction-x/manifest.json"));
  EXPECT_TRUE(ToWorker("jobs/digits-abc123/reused/4/checkpoint-9.json"));
  EXPECT_FALSE(ToTraind("jobs/digits-abc123/reused/4/checkpoint-9.json"));
}

TEST(ProgramPackTest, TheNewestOneOfAFoldThatIsNewerThanTheFolderIsTaken) {
  std::vector<std::string> paths = {"jobs/other/program/fold-0-7.pack"};
  for (const ProgramPack& pack : {ProgramPack{0, 0, 2}, ProgramPack{0, 0, 6}, ProgramPack{0, 0, 9},
                                  ProgramPack{1, 0, 8}, ProgramPack{0, 3, 7}}) {
    paths.push_back(ProgramPackPath(kJob, pack));
  }
  const auto newest = [&](int64_t last, const ProgramPack& next) {
    const auto pack = NewestProgramPack(paths, kJob, last, next);
    return pack ? pack->attempt : 0;
  };
  EXPECT_EQ(newest(0, {0, 0, 9}), 6) << "not its own";
  EXPECT_EQ(newest(0, {0, 0, 12}), 9);
  EXPECT_EQ(newest(0, {0, 3, 12}), 7);
  EXPECT_EQ(newest(5, {0, 0, 9}), 6);
  EXPECT_EQ(newest(6, {0, 0, 9}), 0) << "the folder is as new";
}

TEST(ProgramPackTest, OlderOnesOfItsFoldAreRemoved) {
  const std::string state = NewFolder();
  const std::string folder = state + "/jobs/" + kJob + "/program";
  ASSERT_TRUE(MakeDirs(folder).ok());
  for (const char* name : {"fold-0-3.pack", "fold-0-4.pack", "fold-0-5.pack", "fold-1-3.pack",
                           "trial-1-fold-0-3.pack", "fold-0"}) {
    ASSERT_TRUE(WriteFileDurably(folder + "/" + name, "").ok());
  }
  RemoveOlderProgramPacks(state, kJob, {0, 0, 4});
  EXPECT_NE(access((folder + "/fold-0-3.pack").c_str(), F_OK), 0);
  EXPECT_EQ(ProgramPacksIn(state, kJob).size(), 4u);
  EXPECT_EQ(access((folder + "/fold-0").c_str(), F_OK), 0);
}

TEST(StatePathTest, OtherPathsDoNotTravel) {
  for (const char* path : {"",
                           "/",
                           "/etc/passwd",
                           "tokens",
                           "traind.db",
                           "cache",
                           "cache/",
                           "cache/..",
                           "cache/../traind.db",
                           "cache/x.exe",
                           "cache/.table",
                           "cache//x.table",
                           "./cache/x.table",
                           "jobs/other-abc123/folds.npy",
                           "jobs/digits-abc123",
                           "jobs/digits-abc123/program/fold-0-012.pack",
                           "jobs/digits-abc123/program/fold-0.pack",
                           "jobs/digits-abc123/program/fold-0/work",
                           "jobs/digits-abc123/",
                           "jobs/digits-abc123/..",
                           "jobs/digits-abc123/../other-abc123/folds.npy",
                           "jobs/digits-abc123/attempts/../folds.npy",
                           "jobs/digits-abc123/attempts/x/oof.npy",
                           "jobs/digits-abc123/attempts/1/2/oof.npy",
                           "jobs/digits-abc123/attempts/1/.hidden",
                           "jobs/digits-abc123/attempts/1/oof.npy.tmp-3-1",
                           "jobs/digits-abc123/current",
                           "jobs/digits-abc123/ended",
                           "jobs/digits-abc123/publish.lock",
                           "jobs/digits-abc123/prediction-1/predictions.csv",
                           "jobs/digits-abc123/program/fold-0/stop",
                           "jobs/digits-abc123/attempts/1/a b",
                           "jobs/digits-abc123/attempts/1/a\n"}) {
    EXPECT_FALSE(ToTraind(path)) << path;
    EXPECT_FALSE(ToWorker(path)) << path;
  }
  EXPECT_FALSE(ToWorker(std::string("cache/x\0.table", 14)));
  EXPECT_FALSE(ToWorker(absl::StrCat("cache/", std::string(600, 'x'), ".table")));
}

TEST(StatePathTest, LinksAreRefusedAtAnyDepth) {
  const std::string state = NewFolder(), elsewhere = NewFolder();
  ASSERT_TRUE(MakeDirs(state + "/jobs").ok());
  ASSERT_TRUE(MakeDirs(elsewhere + "/floor").ok());
  ASSERT_TRUE(WriteFileDurably(elsewhere + "/floor/oof.npy", "secret").ok());
  ASSERT_EQ(symlink(elsewhere.c_str(), (state + "/jobs/" + kJob).c_str()), 0);
  const auto check = [&](const std::string& path) {
    return CheckStatePath(state, path, kJob, Direction::kToWorker);
  };
  EXPECT_TRUE(absl::IsPermissionDenied(check(absl::StrCat("jobs/", kJob, "/floor/oof.npy"))));
  ASSERT_TRUE(MakeDirs(state + "/cache").ok());
  ASSERT_EQ(symlink((elsewhere + "/floor/oof.npy").c_str(), (state + "/cache/t.table").c_str()), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(check("cache/t.table")));
  EXPECT_TRUE(absl::IsInvalidArgument(check("cache/../tokens")));
  EXPECT_EQ(check("cache/other.table"), absl::OkStatus());
}

TEST(IncomingFileTest, AFileAppearsOnlyWhenItIsWhole) {
  const std::string path = NewFolder() + "/jobs/x/oof.npy";
  const FileDigest digest = {Sha256Hex("hello world"), 11};
  {
    auto file = IncomingFile::Open(path, digest);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append("hello").ok());
    EXPECT_TRUE(absl::IsUnavailable((*file)->Commit()));
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  auto again = IncomingFile::Open(path, digest);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->offset(), 5) << "what came before is lost";
  EXPECT_TRUE(absl::IsUnavailable(IncomingFile::Open(path, digest).status()))
      << "two may not write to one file";
  EXPECT_TRUE(absl::IsOutOfRange((*again)->Append(" world!")));
  ASSERT_TRUE((*again)->Append(" world").ok());
  EXPECT_EQ((*again)->Commit(), absl::OkStatus());
  EXPECT_EQ(ReadFile(path).value(), "hello world");
}

TEST(IncomingFileTest, OtherBytesThanWereSentAreThrownAway) {
  const std::string path = NewFolder() + "/oof.npy";
  const FileDigest digest = {Sha256Hex("hello"), 5};
  auto file = IncomingFile::Open(path, digest);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append("hallo").ok());
  EXPECT_TRUE(absl::IsDataLoss((*file)->Commit()));
  file->reset();
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  EXPECT_EQ(IncomingFile::Open(path, digest).value()->offset(), 0);
}

TEST(IncomingFileTest, WhatCameBeforeIsDigestedWithTheRest) {
  const std::string path = NewFolder() + "/oof.npy";
  const FileDigest digest = {Sha256Hex("hello world"), 11};
  ASSERT_TRUE(IncomingFile::Open(path, digest).value()->Append("hallo").ok());
  auto rest = IncomingFile::Open(path, digest).value();
  ASSERT_TRUE(rest->Append(" world").ok());
  EXPECT_TRUE(absl::IsDataLoss(rest->Commit())) << "its first bytes are others";
}

TEST(IncomingFileTest, ADigestMustBeOne) {
  const std::string path = NewFolder() + "/oof.npy";
  for (const char* sha256 :
       {"", "abc", "../../../../../../../../../../../../../../../../../../etc/x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(IncomingFile::Open(path, {sha256, 1}).status())) << sha256;
  }
}

}  // namespace
}  // namespace traind
