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

class ResultsTest : public ArtifactReaderTest {
 protected:
  void Leave(const std::string& name, const std::string& bytes) {
    const std::string path = absl::StrCat(state_, "/jobs/a-1/results/", name);
    EXPECT_EQ(MakeDirs(path.substr(0, path.rfind('/'))), absl::OkStatus());
    EXPECT_EQ(WriteFileDurably(path, bytes), absl::OkStatus());
  }
};

TEST_F(ResultsTest, WhatAProgramHasLeftIsReadAsOnePack) {
  Leave("fold-1/answer.csv", std::string(2'500'000, 'y'));
  Leave("fold-0/answer.csv", "id,y\n");
  Leave("fold-0/answer.csv.tmp-7-0", "half");
  auto reader = ArtifactReader::OpenResults(state_, "a-1");
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::string pack;
  for (std::string part = "x"; !part.empty();) {
    part = reader->Next().value();
    EXPECT_LE(part.size(), size_t{1} << 20);
    pack += part;
  }
  EXPECT_EQ(pack, absl::StrCat("traind-pack 1\n5 fold-0/answer.csv\n2500000 fold-1/answer.csv\n\n",
                               "id,y\n", std::string(2'500'000, 'y')));
  EXPECT_EQ(reader->digest().sha256, Sha256Hex(pack));
  EXPECT_EQ(reader->digest().bytes, static_cast<int64_t>(pack.size()));
}

TEST_F(ResultsTest, NothingIsReadThatLiesElsewhere) {
  EXPECT_TRUE(absl::IsNotFound(ArtifactReader::OpenResults(state_, "a-1").status()));
  EXPECT_TRUE(absl::IsNotFound(ArtifactReader::OpenResults(state_, "b-1").status()));
  const std::string results = absl::StrCat(state_, "/jobs/a-1/results");
  ASSERT_EQ(symlink("/etc", results.c_str()), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(ArtifactReader::OpenResults(state_, "a-1").status()));
  ASSERT_EQ(unlink(results.c_str()), 0);
  Leave("answer.csv", "1");
  ASSERT_EQ(symlink("/etc/passwd", (results + "/passwd").c_str()), 0);
  ASSERT_EQ(symlink("/etc", (results + "/etc").c_str()), 0);
  EXPECT_EQ(*ArtifactReader::OpenResults(state_, "a-1")->Next(),
            "traind-pack 1\n1 answer.csv\n\n1");
}

TEST_F(ResultsTest, AFileThatIsReplacedMeanwhileEndsTheReading) {
  Leave("answer.csv", "first");
  Leave("more.csv", "more");
  auto reader = ArtifactReader::OpenResults(state_, "a-1");
  Leave("answer.csv", "the second");
  EXPECT_TRUE(absl::IsAborted(reader->Next().status()));
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
