#include "server/retention/state_files.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/transfer/incoming_file.h"
#include "tests/contract/stored_jobs.h"

namespace traind {
namespace {

class StateFilesTest : public testing::Test {
 protected:
  StateFilesTest() {
    state_ = absl::StrCat(testing::TempDir(), "/state.XXXXXX");
    EXPECT_NE(mkdtemp(state_.data()), nullptr);
  }
  void Write(const std::string& path, size_t bytes = 10'000) {
    const std::string whole = absl::StrCat(state_, "/", path);
    ASSERT_EQ(MakeDirs(whole.substr(0, whole.rfind('/'))), absl::OkStatus());
    ASSERT_EQ(WriteFileDurably(whole, std::string(bytes, 'x')), absl::OkStatus());
  }
  bool Exists(const std::string& path) {
    return std::filesystem::exists(absl::StrCat(state_, "/", path));
  }
  // The number of a process that has ended.
  static pid_t DeadProcess() {
    const pid_t pid = fork();
    if (pid == 0) _exit(0);
    waitpid(pid, nullptr, 0);
    return pid;
  }

  std::string state_;
};

TEST_F(StateFilesTest, InterimIsWhatNoPredictionNoReuseAndNoLaterPredictNeeds) {
  Job job = Ended(FullJob(), JobState::kSucceeded);  // members of Attempts 7 and 8
  const std::string folder = JobDir(job.id) + "/";
  for (const char* kept :
       {"attempts/7/oof.npy", "attempts/7/checkpoint-40.safetensors", "attempts/8/test.npy",
        "prediction-3/predictions.csv", "results/fold-0/answer.csv", "floor/model.bin", "folds.npy",
        "attempts/5/rank0.log"}) {
    Write(folder + kept);
  }
  for (const char* interim : {"attempts/5/checkpoint-9.safetensors", "attempts/6/rows.bin",
                              "reused/4/oof.npy", "prediction-2/predictions.csv"}) {
    Write(folder + interim);
  }
  ASSERT_EQ(symlink("prediction-3", absl::StrCat(state_, "/", CurrentLink(job.id)).c_str()), 0);
  FolderUse use = UseOfJob(state_, job);
  std::sort(use.interim.begin(), use.interim.end());
  for (std::string& path : use.interim) path = path.substr(state_.size() + 1 + folder.size());
  EXPECT_EQ(use.interim,
            std::vector<std::string>({"attempts/5/checkpoint-9.safetensors", "attempts/6/rows.bin",
                                      "prediction-2/predictions.csv", "reused/4/oof.npy"}));
  EXPECT_GE(use.interim_bytes, 4 * 10'000);
  EXPECT_GE(use.bytes - use.interim_bytes, 8 * 10'000);
}

TEST_F(StateFilesTest, AFileWithTwoNamesCountsHalfForEach) {
  Write("jobs/a/oof.npy", 1 << 20);
  ASSERT_EQ(MakeDirs(state_ + "/jobs/b"), absl::OkStatus());
  ASSERT_EQ(link((state_ + "/jobs/a/oof.npy").c_str(), (state_ + "/jobs/b/oof.npy").c_str()), 0);
  const int64_t both = BytesOnDisk(state_ + "/jobs");
  EXPECT_NEAR(both, 1 << 20, 8192);
  EXPECT_EQ(BytesOnDisk(state_ + "/jobs/a"), both / 2);
  ASSERT_EQ(RemoveDurably(state_ + "/jobs/a"), absl::OkStatus());
  EXPECT_EQ(BytesOnDisk(state_ + "/jobs/b"), both);
}

TEST_F(StateFilesTest, RemovingFollowsNoLinkAndWhatIsGoneIsNoError) {
  Write("elsewhere/data.csv");
  Write("jobs/a/file");
  ASSERT_EQ(symlink((state_ + "/elsewhere").c_str(), (state_ + "/jobs/a/link").c_str()), 0);
  EXPECT_EQ(RemoveDurably(state_ + "/jobs/a"), absl::OkStatus());
  EXPECT_FALSE(Exists("jobs/a"));
  EXPECT_TRUE(Exists("elsewhere/data.csv"));
  EXPECT_EQ(RemoveDurably(state_ + "/jobs/a"), absl::OkStatus());
}

TEST_F(StateFilesTest, TemporaryFilesOfDeadWritersAreAbandoned) {
  const std::string dead = absl::StrCat("jobs/a/oof.npy", kTemporaryMark, DeadProcess(), "-3");
  const std::string alive = absl::StrCat("cache/k.table", kTemporaryMark, getpid(), "-0");
  const std::string old = absl::StrCat("cache/l.table", kTemporaryMark, getpid(), "-1");
  Write("jobs/a/report.tmp-final");  // not such a name
  for (const std::string& path : {dead, alive, old}) Write(path);
  const auto yesterday = std::filesystem::file_time_type::clock::now() - std::chrono::hours(25);
  std::filesystem::last_write_time(absl::StrCat(state_, "/", old), yesterday);
  const auto paths = [&](bool shared) {
    std::vector<std::string> paths;
    for (const TemporaryFile& file : ListAbandoned(state_, shared, absl::Now())) {
      EXPECT_GT(file.bytes, 0);
      paths.push_back(file.path.substr(state_.size() + 1));
    }
    std::sort(paths.begin(), paths.end());
    return paths;
  };
  EXPECT_EQ(paths(/*shared=*/false), std::vector<std::string>({old, dead}));
  // Another machine's process has the same number, perhaps.
  EXPECT_EQ(paths(/*shared=*/true), std::vector<std::string>({old}));
}

// A Worker that sent it may be gone; had it lived, it would be refused.
TEST_F(StateFilesTest, WhatCameOfAFileIsAbandonedWhenItsJobIsOver) {
  const std::string digest(64, 'a');
  for (const char* job : {"over", "runs"}) {
    const std::string path = absl::StrCat(state_, "/", AttemptDir(job, 1), "/", kTestFile);
    const auto file = IncomingFile::Open(path, {digest, 1000});
    ASSERT_TRUE(file.ok() && (*file)->Append("some bytes").ok());
  }
  Write(absl::StrCat(AttemptDir("over", 1), "/", kOofFile, kTemporaryMark, getpid(), "-0"));
  EXPECT_THAT(ListAbandoned(state_, /*shared=*/true, absl::Now()), testing::IsEmpty());
  Write(EndedMark("over"));
  const auto abandoned = ListAbandoned(state_, /*shared=*/true, absl::Now());
  ASSERT_EQ(abandoned.size(), 1u);
  EXPECT_THAT(abandoned[0].path,
              testing::HasSubstr(absl::StrCat(AttemptDir("over", 1), "/test.npy")));
}

TEST_F(StateFilesTest, ARotatedLogKeepsItsEndAndItsWriterGoesOn) {
  const std::string path = state_ + "/worker.log";
  const int writer = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  const auto say = [&](const std::string& line) {
    ASSERT_EQ(write(writer, line.data(), line.size()), static_cast<ssize_t>(line.size()));
  };
  for (int i = 1000; i < 2000; ++i) say(absl::StrCat("line ", i, "\n"));
  ASSERT_EQ(RotateLog(path, 25), absl::OkStatus());
  EXPECT_EQ(ReadFile(path + ".1").value(), "line 1998\nline 1999\n");
  say("after\n");
  EXPECT_EQ(ReadFile(path).value(), "after\n");
  ASSERT_EQ(RotateLog(path, 25), absl::OkStatus());
  EXPECT_EQ(ReadFile(path + ".1").value(), "after\n");
  close(writer);
}

TEST_F(StateFilesTest, TheCacheIsListedByKey) {
  Write("cache/k.images");
  Write("cache/k.table");
  Write("cache/abc.pt");
  Write(absl::StrCat("cache/m.table", kTemporaryMark, getpid(), "-0"));
  const auto entries = ListCache(state_);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].key, "abc");
  EXPECT_TRUE(entries[0].is_model_file);
  EXPECT_EQ(entries[1].key, "k");
  EXPECT_FALSE(entries[1].is_model_file);
  ASSERT_EQ(entries[1].files.size(), 2u);
  EXPECT_EQ(entries[1].files[0], state_ + "/cache/k.table");
}

}  // namespace
}  // namespace traind
