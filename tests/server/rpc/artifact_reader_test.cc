#include "server/rpc/artifact_reader.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "common/base/durable_file.h"

namespace traind {
namespace {

class ArtifactReaderTest : public testing::Test {
 protected:
  ArtifactReaderTest() {
    state_ = absl::StrCat(testing::TempDir(), "/artifacts.XXXXXX");
    EXPECT_NE(mkdtemp(state_.data()), nullptr);
    Publish(1, "one");
  }
  void Publish(int number, const std::string& bytes) {
    const std::string job = absl::StrCat(state_, "/jobs/a-1");
    const std::string name = absl::StrCat("prediction-", number);
    EXPECT_EQ(MakeDirs(absl::StrCat(job, "/", name)), absl::OkStatus());
    EXPECT_EQ(WriteFileDurably(absl::StrCat(job, "/", name, "/predictions.csv"), bytes),
              absl::OkStatus());
    EXPECT_EQ(symlink(name.c_str(), absl::StrCat(job, "/next").c_str()), 0);
    EXPECT_EQ(rename(absl::StrCat(job, "/next").c_str(), absl::StrCat(job, "/current").c_str()), 0);
  }
  std::string state_;
};

TEST_F(ArtifactReaderTest, WhatWasOpenedIsReadAlsoWhenANewerOneReplacesIt) {
  auto reader = ArtifactReader::Open(state_, "a-1", "predictions.csv");
  ASSERT_TRUE(reader.ok()) << reader.status();
  Publish(2, "two");
  EXPECT_EQ(reader->digest().sha256, Sha256Hex("one"));
  EXPECT_EQ(reader->digest().bytes, 3);
  EXPECT_EQ(*reader->Next(), "one");
  EXPECT_EQ(*reader->Next(), "");
  EXPECT_EQ(*ArtifactReader::Open(state_, "a-1", "")->Next(), "two");
}

TEST_F(ArtifactReaderTest, ALinkInPlaceOfTheFileIsNotFollowed) {
  const std::string file = absl::StrCat(state_, "/jobs/a-1/prediction-1/predictions.csv");
  ASSERT_EQ(unlink(file.c_str()), 0);
  ASSERT_EQ(symlink("/etc/passwd", file.c_str()), 0);
  EXPECT_FALSE(ArtifactReader::Open(state_, "a-1", "predictions.csv").ok());
}

TEST_F(ArtifactReaderTest, NamesThatAreNotPlainAreInvalid) {
  for (const std::string name : {"../a", "a/b", "/x", "..", "a b", "a\n", "\xc3\xa4"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ArtifactReader::Open(state_, "a-1", name).status()))
        << name;
  }
  EXPECT_TRUE(absl::IsNotFound(ArtifactReader::Open(state_, "a-1", "oof.npy").status()));
  EXPECT_TRUE(absl::IsNotFound(ArtifactReader::Open(state_, "b-1", "manifest.json").status()));
}

}  // namespace
}  // namespace traind
