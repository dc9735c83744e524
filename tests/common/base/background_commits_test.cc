#include "common/base/background_commits.h"

#include <absl/strings/str_cat.h>
#include <absl/synchronization/barrier.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "common/base/durable_file.h"

namespace traind {
namespace {

TEST(BackgroundCommitsTest, WhatIsAddedIsThereInTheEnd) {
  const std::string folder = testing::TempDir();
  BackgroundCommits commits;
  for (int i = 0; i < 50; ++i) {
    const std::string path = absl::StrCat(folder, "/committed-", i);
    ASSERT_TRUE(commits.Add([path] { return WriteFileDurably(path, path); }).ok());
  }
  ASSERT_TRUE(commits.Finish().ok());
  for (int i = 0; i < 50; ++i) {
    const std::string path = absl::StrCat(folder, "/committed-", i);
    EXPECT_EQ(ReadFile(path).value_or(""), path);
  }
}

// Else it would hang.
TEST(BackgroundCommitsTest, SomeRunAtTheSameTime) {
  absl::Barrier* const meet = new absl::Barrier(4);
  BackgroundCommits commits;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(commits
                    .Add([meet] {
                      if (meet->Block()) delete meet;
                      return absl::OkStatus();
                    })
                    .ok());
  }
  EXPECT_TRUE(commits.Finish().ok());
}

TEST(BackgroundCommitsTest, AfterAnErrorNothingIsStartedAndTheErrorIsTold) {
  std::atomic<int> started{0};
  BackgroundCommits commits;
  absl::Status added;
  for (int i = 0; i < 100 && added.ok(); ++i) {
    added = commits.Add([&started]() -> absl::Status {
      ++started;
      return absl::ResourceExhaustedError("the disk is full");
    });
  }
  EXPECT_TRUE(absl::IsResourceExhausted(added)) << added;
  EXPECT_TRUE(absl::IsResourceExhausted(commits.Finish()));
  EXPECT_EQ(started, 4);
  BackgroundCommits last;
  ASSERT_TRUE(last.Add([] { return absl::DataLossError("torn"); }).ok());
  EXPECT_TRUE(absl::IsDataLoss(last.Finish()));
}

}  // namespace
}  // namespace traind
