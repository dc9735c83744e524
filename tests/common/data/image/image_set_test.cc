#include "common/data/image/image_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "common/data/image/decode.h"
#include "common/data/image/image_folder.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ImageSetTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& bytes) {
    const std::string whole = root_ + "/" + path;
    ASSERT_TRUE(MakeDirs(whole.substr(0, whole.rfind('/'))).ok());
    ASSERT_TRUE(WriteFileDurably(whole, bytes).ok());
  }
  void Copy(const std::string& name, const std::string& path) {
    auto bytes = ReadFile("tests/common/data/image/golden/" + name);
    ASSERT_TRUE(bytes.ok());
    Write(path, *bytes);
  }
  ImageSet Read(const std::vector<std::string>& paths, int threads = 2) {
    ImageSetOptions options;
    options.root = root_;
    options.size = 12;
    options.threads = threads;
    pixels_.assign(paths.size() * 12 * 12 * 3, 7);
    return ReadImages(paths, options, absl::MakeSpan(pixels_));
  }

  const std::string root_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::vector<uint8_t> pixels_;
};

TEST_F(ImageSetTest, ImagesOfMixedSizesBecomeOfOneSizeWithAnyNumberOfThreads) {
  std::vector<std::string> paths;
  for (int i = 0; i < 40; ++i) {
    paths.push_back("a/" + std::to_string(i));
    Copy(i % 2 == 0 ? "rgb.png" : "large.jpg", paths.back());
  }
  const ImageSet one = Read(paths, 1);
  const std::vector<uint8_t> alone = pixels_;
  const ImageSet four = Read(paths, 4);
  EXPECT_EQ(alone, pixels_);
  EXPECT_EQ(one.content_sha256, four.content_sha256);
  const Image square = CropAndResize(*DecodeImage(*ReadFile(root_ + "/a/0"), {}), 12);
  EXPECT_TRUE(std::equal(square.pixels.begin(), square.pixels.end(), pixels_.begin()));
  for (const std::string& error : four.errors) EXPECT_EQ(error, "");
}

TEST_F(ImageSetTest, WhatCannotBeReadIsNamedAndIsBlack) {
  Copy("rgb.png", "good.png");
  Write("text.png", "hello");
  const ImageSet set = Read({"good.png", "text.png", "gone.png", ""});
  EXPECT_THAT(set.errors, ElementsAre("", "text.png is neither a JPEG nor a PNG file",
                                      "gone.png cannot be found", " is missing"));
  EXPECT_EQ(pixels_[12 * 12 * 3], 0);
  EXPECT_EQ(pixels_.back(), 0);
}

TEST_F(ImageSetTest, NoPathLeadsOutOfTheFolder) {
  Copy("rgb.png", "inside/good.png");
  Copy("rgb.png", "secret.png");
  const std::string outer = root_;
  ImageSetOptions options;
  options.root = root_ + "/inside";
  options.size = 12;
  ASSERT_TRUE(symlink("../secret.png", (options.root + "/link.png").c_str()) == 0 ||
              errno == EEXIST);
  std::vector<uint8_t> pixels(4 * 12 * 12 * 3);
  const ImageSet set =
      ReadImages({"good.png", "../secret.png", "link.png", outer + "/inside/good.png"}, options,
                 absl::MakeSpan(pixels));
  EXPECT_EQ(set.errors[0], "");
  EXPECT_THAT(set.errors[1], HasSubstr("does not lie below"));
  EXPECT_THAT(set.errors[2], HasSubstr("does not lie below"));
  EXPECT_NE(set.errors[3], "");
}

TEST_F(ImageSetTest, TheDigestChangesWithTheBytes) {
  Copy("rgb.png", "a.png");
  Copy("grey.png", "b.png");
  ImageSetOptions options;
  options.root = root_;
  options.size = 12;
  const std::string digest = DigestImages({"a.png", "b.png"}, options);
  EXPECT_EQ(digest, Read({"a.png", "b.png"}).content_sha256);
  EXPECT_NE(digest, DigestImages({"b.png", "a.png"}, options));
  Copy("alpha.png", "b.png");
  EXPECT_NE(digest, DigestImages({"a.png", "b.png"}, options));
}

TEST_F(ImageSetTest, FoldersOfClassesBecomeAManifest) {
  Copy("rgb.png", "cats/2.PNG");
  Copy("rgb.png", "cats/deeper/1.png");
  Copy("rgb.png", "dogs, large/1.jpg");
  Write("dogs, large/notes.txt", "x");
  Write(".hidden/1.png", "x");
  const auto folder = ListClassFolders(root_, "file", "kind");
  ASSERT_TRUE(folder.ok()) << folder.status().ToString();
  EXPECT_EQ(folder->manifest,
            "file,kind\ncats/2.PNG,cats\ncats/deeper/1.png,cats\n"
            "\"dogs, large/1.jpg\",\"dogs, large\"\n");
  EXPECT_THAT(folder->classes, ElementsAre("cats", "dogs, large"));
  ASSERT_EQ(folder->warnings.size(), 1u);
  EXPECT_THAT(folder->warnings[0], HasSubstr("1 file not named"));
  const auto all = ListImages(root_, "file");
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->files, 3);
  EXPECT_THAT(all->manifest, HasSubstr("file\ncats/2.PNG\n"));
}

TEST_F(ImageSetTest, AFolderAboveTheFolderOfTheClassesIsNoticed) {
  Copy("rgb.png", "train/cats/1.png");
  Copy("rgb.png", "test/cats/1.png");
  const auto folder = ListClassFolders(root_, "file", "kind");
  ASSERT_TRUE(folder.ok()) << folder.status().ToString();
  ASSERT_EQ(folder->warnings.size(), 1u);
  EXPECT_THAT(folder->warnings[0], HasSubstr("the classes are test, train. Is the folder of the "
                                             "classes one level below?"));
}

TEST_F(ImageSetTest, AClassFolderWithoutImagesIsRefused) {
  Copy("rgb.png", "cats/1.png");
  Write("dogs/readme.txt", "none yet");
  const auto folder = ListClassFolders(root_, "file", "kind");
  EXPECT_THAT(std::string(folder.status().message()),
              HasSubstr("dogs: there is no image (.jpg, .jpeg, .png) of this class"));
}

TEST_F(ImageSetTest, AFolderWithoutClassFoldersIsRefused) {
  Copy("rgb.png", "1.png");
  EXPECT_THAT(std::string(ListClassFolders(root_, "file", "kind").status().message()),
              HasSubstr("has no folders in it"));
  EXPECT_THAT(std::string(CheckClassFolders(root_).message()), HasSubstr("has no folders in it"));
  EXPECT_FALSE(ListClassFolders(root_ + "/gone", "file", "kind").ok());
  EXPECT_THAT(std::string(ListClassFolders(root_, "kind", "kind").status().message()),
              HasSubstr("both the image and the target"));
}

}  // namespace
}  // namespace traind
