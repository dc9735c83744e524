#include "worker/data/image_source.h"

#include <gtest/gtest.h>

#include <numeric>

#include "common/data/image/image_cache.h"

namespace traind {
namespace {

class ImageSourceTest : public ::testing::Test {
 protected:
  ImageSourceTest() {
    std::vector<uint8_t> pixels(6 * 4 * 4 * 3);
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 7 % 256);
    const std::string path = ::testing::TempDir() + "/source.images";
    EXPECT_TRUE(WriteImageCache({4, 2, 4, 3}, pixels, path).ok());
    cache_ = *ImageCache::Open(path);
  }
  ImageSource Source(int64_t first, const Augmentation& augmentation) const {
    return ImageSource({cache_, cache_->pixels() + first * 48}, 4, 3, plain_, augmentation);
  }
  std::vector<float> Load(const ImageSource& source, std::vector<int32_t> rows, bool training,
                          uint64_t seed) const {
    MediaBatch batch;
    batch.values = {1, 2, 3};  // left over from an earlier batch
    EXPECT_TRUE(source.Load({rows, training, seed}, batch).ok());
    EXPECT_EQ(batch.shape, (std::vector<int64_t>{static_cast<int64_t>(rows.size()), 4, 4, 3}));
    return batch.values;
  }

  std::shared_ptr<const ImageCache> cache_;
  const PixelScale plain_{{0, 0, 0}, {1, 1, 1}};
};

TEST_F(ImageSourceTest, TestRowsFollowTheTrainingRows) {
  const ImageSource source = Source(4, {});
  const std::vector<float> values = Load(source, {1}, false, 0);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], cache_->pixels()[5 * 48 + i]);
}

TEST_F(ImageSourceTest, ChangesOfARowDependOnSeedAndRowAlone) {
  const ImageSource source = Source(0, {true, 0.25, 0.2});
  const std::vector<float> both = Load(source, {2, 0}, true, 9);
  const std::vector<float> first = Load(source, {2}, true, 9), second = Load(source, {0}, true, 9);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), both.begin()));
  EXPECT_TRUE(std::equal(second.begin(), second.end(), both.begin() + 48));
  EXPECT_NE(Load(source, {2}, true, 10), first);
  // Outside of training the seed has no effect.
  EXPECT_EQ(Load(source, {2}, false, 9), Load(source, {2}, false, 10));
}

}  // namespace
}  // namespace traind
