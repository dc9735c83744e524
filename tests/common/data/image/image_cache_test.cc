#include "common/data/image/image_cache.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "common/base/durable_file.h"

namespace traind {
namespace {

class ImageCacheTest : public ::testing::Test {
 protected:
  ImageCacheTest() {
    std::iota(pixels_.begin(), pixels_.end(), uint8_t{5});
    EXPECT_TRUE(WriteImageCache({2, 1, 4, 3}, pixels_, path_).ok());
  }
  const std::string path_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::vector<uint8_t> pixels_ = std::vector<uint8_t>(3 * 4 * 4 * 3);
};

TEST_F(ImageCacheTest, WhatIsWrittenIsRead) {
  const auto cache = ImageCache::Open(path_);
  ASSERT_TRUE(cache.ok()) << cache.status().ToString();
  EXPECT_EQ((*cache)->shape().train_rows, 2);
  EXPECT_EQ((*cache)->shape().test_rows, 1);
  EXPECT_EQ((*cache)->shape().stride(), 48);
  EXPECT_TRUE(std::equal(pixels_.begin(), pixels_.end(), (*cache)->pixels()));
  EXPECT_TRUE((*cache)->VerifyDigest().ok());
}

TEST_F(ImageCacheTest, ADamagedFileIsNoticed) {
  std::string bytes = *ReadFile(path_);
  bytes.back() ^= 1;
  ASSERT_TRUE(WriteFileDurably(path_, bytes).ok());
  EXPECT_TRUE(absl::IsDataLoss((*ImageCache::Open(path_))->VerifyDigest()));
  for (const size_t size : {size_t{0}, size_t{20}, size_t{128}, bytes.size() - 1}) {
    ASSERT_TRUE(WriteFileDurably(path_, bytes.substr(0, size)).ok());
    EXPECT_TRUE(absl::IsDataLoss(ImageCache::Open(path_).status())) << size;
  }
  bytes[8] = 7;  // more rows than there are
  ASSERT_TRUE(WriteFileDurably(path_, bytes).ok());
  EXPECT_TRUE(absl::IsDataLoss(ImageCache::Open(path_).status()));
  EXPECT_TRUE(absl::IsNotFound(ImageCache::Open(path_ + "x").status()));
}

}  // namespace
}  // namespace traind
