#include "common/data/media/media_files.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace traind {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class MediaFilesTest : public testing::Test {
 protected:
  MediaFilesTest() {
    root_ = absl::StrCat(testing::TempDir(), "/media.XXXXXX");
    EXPECT_NE(mkdtemp(root_.data()), nullptr);
    root_ = fs::canonical(root_).string();
  }
  ~MediaFilesTest() override { fs::remove_all(root_); }

  std::string Write(const std::string& path, const std::string& bytes) const {
    const std::string whole = absl::StrCat(root_, "/", path);
    fs::create_directories(fs::path(whole).parent_path());
    std::ofstream(whole, std::ios::binary) << bytes;
    return whole;
  }
  absl::StatusOr<std::optional<MediaFiles>> List(const std::string& path,
                                                 const std::vector<std::string>& columns,
                                                 bool folders = false) const {
    return ListMediaFiles(path, columns, folders, root_);
  }

  std::string root_;
};

TEST_F(MediaFilesTest, AFolderHasItsImagesAndTheNamesOfTheRest) {
  Write("photos/cat/1.png", "x");
  Write("photos/cat/deep/2.JPG", "x");
  Write("photos/cat/notes.txt", "x");
  Write("photos/.hidden/3.png", "x");
  fs::create_directories(root_ + "/photos/dog");
  const auto found = List(root_ + "/photos", {"file"}, true).value().value();
  EXPECT_EQ(found.root, root_ + "/photos");
  EXPECT_EQ(found.table, "");
  EXPECT_THAT(found.files, UnorderedElementsAre("cat/1.png", "cat/deep/2.JPG"));
  EXPECT_THAT(found.names, UnorderedElementsAre("cat/", "cat/deep/", "cat/notes.txt", "dog/"));
}

TEST_F(MediaFilesTest, ATableHasTheFilesThatItNames) {
  const std::string path =
      Write("t/train.csv", "id;image;mask\n1;a.npy;m/a.npy\n2;b.npy;\n3;../c;\n");
  const auto found = List(path, {"image", "mask"}).value().value();
  EXPECT_EQ(found.root, root_ + "/t");
  EXPECT_EQ(found.table, "train.csv");
  EXPECT_THAT(found.files, UnorderedElementsAre("train.csv", "a.npy", "b.npy", "../c", "m/a.npy"));
  EXPECT_THAT(found.names, IsEmpty());
}

TEST_F(MediaFilesTest, BothFilesOfAPairTravel) {
  Write("t/scan.img.gz", "x");
  const std::string path = Write("t/test.csv", "image\nscan.hdr\n");
  EXPECT_THAT(List(path, {"image", "mask"}).value()->files,
              UnorderedElementsAre("test.csv", "scan.hdr", "scan.img.gz"));
}

TEST_F(MediaFilesTest, AnArrayIsAFile) {
  EXPECT_FALSE(List(Write("x.npy", "\x93NUMPY..."), {"file"}, true).value().has_value());
  EXPECT_FALSE(List(Write("x.parquet", "PAR1..."), {"file"}, true).value().has_value());
}

TEST_F(MediaFilesTest, WhatIsNoTableOrLacksTheColumnIsNamed) {
  EXPECT_THAT(List(Write("a.csv", "id,picture\n1,a.png\n"), {"file"}).status().message(),
              HasSubstr("a.csv: there is no column 'file'"));
  EXPECT_TRUE(absl::IsNotFound(List(root_ + "/none.csv", {"file"}).status()));
  EXPECT_FALSE(List(root_, {"file"}, /*folders=*/false).ok());
}

TEST_F(MediaFilesTest, AFolderThatContainsItselfEnds) {
  Write("photos/cat/1.png", "x");
  fs::create_directory_symlink("..", root_ + "/photos/cat/up");
  EXPECT_THAT(List(root_ + "/photos", {}, true).status().message(), HasSubstr("16 deep"));
}

}  // namespace
}  // namespace traind
