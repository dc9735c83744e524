#include "server/intake/media_load.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "common/base/durable_file.h"

namespace traind {
namespace {

class MediaLoadTest : public ::testing::Test {
 protected:
  MediaLoadTest() {
    std::string pattern = ::testing::TempDir() + "/load.XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~MediaLoadTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& bytes) const {
    const std::string path = absl::StrCat(folder_, "/", name);
    ASSERT_TRUE(MakeDirs(path.substr(0, path.rfind('/'))).ok());
    ASSERT_TRUE(WriteFileDurably(path, bytes).ok());
  }
  DataFile Table(const std::string& text, std::vector<std::string> header) const {
    Write("table.csv", text);
    DataFile file;
    file.path = folder_ + "/table.csv";
    file.bytes = static_cast<int64_t>(text.size());
    file.header = std::move(header);
    return file;
  }

  std::string folder_;
};

TEST_F(MediaLoadTest, AFolderCountsItsImagesAndNothingElse) {
  Write("a/1.png", std::string(100, 'x'));
  Write("a/deep/2.JPG", std::string(300, 'x'));
  Write("a/notes.txt", std::string(5000, 'x'));
  Write(".hidden/3.png", std::string(5000, 'x'));
  DataFile file;
  file.path = folder_;
  file.folder = true;
  const MediaLoad load = CountMedia(file, {"file"});
  EXPECT_EQ(load.files, 2);
  EXPECT_EQ(load.bytes, 400);
}

TEST_F(MediaLoadTest, ATableCountsTheFilesOfItsColumns) {
  Write("v/1.npy", std::string(1000, 'x'));
  Write("v/m.npy", std::string(500, 'x'));
  const DataFile file = Table(
      "id,image,mask\n1,v/1.npy,v/m.npy\n2,v/1.npy,\n3,v/gone.npy,v/m.npy\n4,../x,/etc/passwd\n",
      {"id", "image", "mask"});
  const MediaLoad load = CountMedia(file, {"image", "mask"});
  EXPECT_EQ(load.files, 7);
  EXPECT_EQ(load.bytes, 750 * 7);  // by the mean of the four that exist
  EXPECT_EQ(CountMedia(file, {"other"}).files, 0);
}

TEST_F(MediaLoadTest, OfALongTableTheFirstRowsTellTheRest) {
  Write("1.png", std::string(1000, 'x'));
  std::string text = "file,class\n";
  for (int i = 0; i < 40'000; ++i) absl::StrAppend(&text, "1.png,", 1000 + i % 9000, "\n");
  MediaLoad load = CountMedia(Table(text, {"file", "class"}), {"file"});
  EXPECT_NEAR(static_cast<double>(load.files), 40'000, 10);
  EXPECT_EQ(load.bytes, load.files * 1000);
  EXPECT_GT(MediaTime(load), absl::Seconds(3));
  EXPECT_LT(MediaTime(load), absl::Seconds(4));
  for (int i = 0; i < 40'000; ++i) absl::StrAppend(&text, "1.png,", 1000 + i % 9000, "\n");
  load = CountMedia(Table(text, {"file", "class"}), {"file"});
  EXPECT_EQ(load.files, 50'000);  // the limit
}

TEST_F(MediaLoadTest, WhatIsNoTableOrGoneIsNothing) {
  DataFile file;
  file.path = folder_ + "/none.csv";
  EXPECT_EQ(CountMedia(file, {"file"}).files, 0);
  file.arrays = true;
  EXPECT_EQ(CountMedia(file, {"file"}).files, 0);
  file.arrays = false;
  file.folder = true;
  EXPECT_EQ(CountMedia(file, {"file"}).files, 0);
  EXPECT_EQ(MediaTime({}), absl::ZeroDuration());
}

}  // namespace
}  // namespace traind
