// A folder and a bucket do the same.
#include "server/objects/object_store.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <thread>

#include "common/base/durable_file.h"
#include "server/objects/s3_objects.h"
#include "tests/server/objects/test_bucket.h"

namespace traind {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::atomic<bool> kNever{false};

std::string NewFolder() {
  std::string folder = absl::StrCat(testing::TempDir(), "/objects.XXXXXX");
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  return folder;
}

// A file that is open, and gone by name.
class OpenFile {
 public:
  explicit OpenFile(const std::string& bytes = "") {
    const std::string path = absl::StrCat(NewFolder(), "/file");
    EXPECT_EQ(WriteFileDurably(path, bytes), absl::OkStatus());
    fd_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
    unlink(path.c_str());
  }
  ~OpenFile() { close(fd_); }
  int fd() const { return fd_; }
  std::string Bytes() const { return ReadFile(absl::StrCat("/proc/self/fd/", fd_)).value(); }

 private:
  int fd_ = -1;
};

class ObjectStoreTest : public testing::TestWithParam<bool> {
 protected:
  ObjectStoreTest() {
    if (GetParam()) bucket_ = std::make_unique<TestBucket>();
    auto opened = OpenObjects(bucket_ ? bucket_->place() : NewFolder(), ObjectUse::kOwn);
    EXPECT_TRUE(opened.ok()) << opened.status();
    objects_ = *std::move(opened);
  }
  std::vector<std::string> Keys(const std::string& prefix) {
    std::vector<std::string> keys;
    const std::vector<ObjectInfo> objects = objects_->List(prefix).value();
    for (const ObjectInfo& object : objects) keys.push_back(object.key);
    return keys;
  }
  absl::Status Once(const std::string& key, absl::string_view text) {
    return objects_->WriteOnce(key, {text.substr(0, 2), text.substr(2)});
  }

  std::unique_ptr<TestBucket> bucket_;
  std::shared_ptr<const ObjectStore> objects_;
};

INSTANTIATE_TEST_SUITE_P(Both, ObjectStoreTest, testing::Bool(), [](const auto& info) {
  return info.param ? std::string("Bucket") : std::string("Folder");
});

TEST_P(ObjectStoreTest, WhatWasWrittenIsRead) {
  EXPECT_TRUE(absl::IsNotFound(objects_->Read("jobs/a").status()));
  ASSERT_EQ(objects_->Write("jobs/a", "one"), absl::OkStatus());
  EXPECT_EQ(objects_->Read("jobs/a").value(), "one");
  ASSERT_EQ(objects_->Write("jobs/a", ""), absl::OkStatus());
  EXPECT_EQ(objects_->Read("jobs/a").value(), "");
  ASSERT_EQ(objects_->WriteOften("lease", "two"), absl::OkStatus());
  EXPECT_EQ(objects_->Read("lease").value(), "two");
  ASSERT_EQ(objects_->Remove("jobs/a"), absl::OkStatus());
  ASSERT_EQ(objects_->Remove("jobs/a"), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(objects_->Read("jobs/a").status()));
}

TEST_P(ObjectStoreTest, OfManyWhoWriteOnceOneWins) {
  std::atomic<int> won{0}, lost{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const absl::Status status = Once("store/log/1", absl::StrCat("writer ", i));
      won += status.ok() ? 1 : 0;
      lost += absl::IsAlreadyExists(status) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(won, 1);
  EXPECT_EQ(lost, 7);
  EXPECT_THAT(objects_->Read("store/log/1").value(), HasSubstr("writer "));
}

TEST_P(ObjectStoreTest, FilesGoAndComeWithTheirTimes) {
  const absl::Time mtime = absl::FromUnixNanos(1700000000123456789);
  std::string bytes;
  for (int i = 0; i < 300000; ++i) absl::StrAppend(&bytes, i, ",");
  const OpenFile sent(bytes), got("something longer than nothing");
  ASSERT_EQ(objects_->WriteFile("jobs/j/file é+&<.bin", {sent.fd(), mtime}, kNever),
            absl::OkStatus());
  const auto kept = objects_->ReadTo("jobs/j/file é+&<.bin", got.fd(), kNever);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(got.Bytes(), bytes);
  if (!objects_->is_folder()) {
    EXPECT_EQ(*kept, mtime);
  }
  EXPECT_THAT(Keys("jobs/"), ElementsAre("jobs/j/file é+&<.bin"));
  EXPECT_TRUE(absl::IsNotFound(objects_->ReadTo("jobs/other", got.fd(), kNever).status()));
  const std::atomic<bool> stop{true};
  EXPECT_TRUE(absl::IsCancelled(objects_->WriteFile("jobs/k", {sent.fd(), mtime}, stop)));
  EXPECT_TRUE(absl::IsCancelled(objects_->ReadTo("jobs/j/file é+&<.bin", got.fd(), stop).status()));
  EXPECT_THAT(Keys("jobs/k"), ElementsAre());
}

TEST_P(ObjectStoreTest, AListIsWholeAndSorted) {
  std::vector<std::string> expected;
  for (int i = 0; i < 10; ++i) {
    expected.push_back(absl::StrCat("store/log/0", i));
    ASSERT_EQ(objects_->Write(expected.back(), std::string(static_cast<size_t>(i), 'x')),
              absl::OkStatus());
  }
  ASSERT_EQ(objects_->Write("store/logs", "another"), absl::OkStatus());
  EXPECT_EQ(Keys("store/log/"), expected);
  EXPECT_EQ(objects_->List("store/log/").value()[7].bytes, 7);
  EXPECT_THAT(Keys("nothing/"), ElementsAre());
}

TEST_P(ObjectStoreTest, ALargeFileGoesInParts) {
  std::string bytes((size_t{32} << 20) + 12345, '\0');
  for (size_t i = 0; i < bytes.size(); i += 4096) bytes[i] = static_cast<char>(i >> 12);
  const OpenFile sent(bytes), got;
  ASSERT_EQ(objects_->WriteFile("cache/large", {sent.fd(), absl::Now()}, kNever), absl::OkStatus());
  ASSERT_TRUE(objects_->ReadTo("cache/large", got.fd(), kNever).ok());
  EXPECT_TRUE(got.Bytes() == bytes);
  const ObjectInfo info = objects_->List("cache/").value().at(0);
  EXPECT_EQ(info.bytes, static_cast<int64_t>(bytes.size()));
  EXPECT_EQ(info.md5, "");
}

class BucketTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!bucket_.is_stand_in()) GTEST_SKIP() << "a real store makes no faults";
    objects_ = OpenObjects(bucket_.place(), ObjectUse::kOwn).value();
  }
  TestBucket bucket_;
  std::shared_ptr<const ObjectStore> objects_;
};

TEST_F(BucketTest, AStoreThatIsBusyIsAskedAgain) {
  bucket_.Ask(R"({"fail": 3})");
  EXPECT_EQ(objects_->Write("a", "one"), absl::OkStatus());
  bucket_.Ask(R"({"fail": 2})");
  EXPECT_EQ(objects_->Read("a").value(), "one");
  bucket_.Ask(R"({"fail": 1})");
  EXPECT_EQ(objects_->List("a")->size(), 1u);
  // A lease is written again by whoever renews it, in time.
  bucket_.Ask(R"({"fail": 1})");
  EXPECT_TRUE(absl::IsUnavailable(objects_->WriteOften("lease", "x")));
  bucket_.Ask(R"({"away": true})");
  EXPECT_TRUE(absl::IsUnavailable(objects_->Read("a").status()));
}

TEST_F(BucketTest, AStoreThatIsSilentIsGivenUp) {
  bucket_.Ask(R"({"slow": 60})");
  EXPECT_TRUE(absl::IsUnavailable(objects_->WriteOnce("store/log/1", {"one"})));
}

// The write was carried out, and its answer lost: it is told from that of somebody else.
TEST_F(BucketTest, AWriteWhoseAnswerWasLostIsKnownAgain) {
  bucket_.Ask(R"({"lose": 1})");
  EXPECT_EQ(objects_->WriteOnce("store/log/1", {"one ", "entry"}), absl::OkStatus());
  EXPECT_EQ(objects_->Read("store/log/1").value(), "one entry");
  bucket_.Ask(R"({"fail": 1})");
  EXPECT_TRUE(absl::IsAlreadyExists(objects_->WriteOnce("store/log/1", {"another"})));
}

TEST_F(BucketTest, AStoreThatIgnoresTheConditionIsRefused) {
  bucket_.Ask(R"({"ignore_once": true})");
  const auto opened = OpenObjects(bucket_.place(), ObjectUse::kOwn);
  ASSERT_TRUE(absl::IsFailedPrecondition(opened.status())) << opened.status();
  EXPECT_THAT(opened.status().message(), HasSubstr("If-None-Match"));
  // Whoever only reads needs no such promise, and no right to write.
  EXPECT_TRUE(OpenObjects(bucket_.place(), ObjectUse::kRead).ok());
}

TEST_F(BucketTest, WrongCredentialsAndBucketsAreToldInWords) {
  const auto with = [](const char* key, const char* secret) -> Environ {
    return [=](const char* name) {
      const std::string wanted = name;
      if (wanted == "AWS_ACCESS_KEY_ID") return std::string(key);
      if (wanted == "AWS_SECRET_ACCESS_KEY") return std::string(secret);
      return ProcessEnviron(name);
    };
  };
  const auto wrong = OpenS3Objects(bucket_.place(), ObjectUse::kOwn, with("test-key", "wrong"));
  EXPECT_TRUE(absl::IsFailedPrecondition(wrong.status())) << wrong.status();
  EXPECT_THAT(wrong.status().message(), HasSubstr("SignatureDoesNotMatch"));
  EXPECT_THAT(wrong.status().message(), Not(HasSubstr("wrong")));
  EXPECT_THAT(OpenS3Objects(bucket_.place(), ObjectUse::kOwn, with("", "")).status().message(),
              HasSubstr("AWS_ACCESS_KEY_ID"));
  EXPECT_THAT(OpenObjects("s3://another-bucket", ObjectUse::kOwn).status().message(),
              HasSubstr("NoSuchBucket"));
  const Environ nowhere = [](const char* name) {
    const std::string wanted = name;
    return wanted == "AWS_ENDPOINT_URL" ? std::string("http://127.0.0.1:1") : ProcessEnviron(name);
  };
  EXPECT_TRUE(absl::IsUnavailable(OpenS3Objects("s3://bucket", ObjectUse::kOwn, nowhere).status()));
}

}  // namespace
}  // namespace traind
