#include "worker/data/image_pixels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

namespace traind {
namespace {

constexpr int64_t kSize = 6;

std::vector<uint8_t> Ramp(int64_t channels) {
  std::vector<uint8_t> pixels(static_cast<size_t>(kSize * kSize * channels));
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>((i * 37) % 251);
  return pixels;
}

// A scale that leaves bytes unchanged.
PixelScale AsTheyAre(int64_t channels) {
  const auto count = static_cast<size_t>(channels);
  return {std::vector<float>(count, 0), std::vector<float>(count, 1)};
}

std::vector<float> Changed(const std::vector<uint8_t>& pixels, int64_t channels,
                           const Augmentation& augmentation, uint64_t seed) {
  std::vector<float> out(pixels.size());
  PixelWriter(kSize, channels, AsTheyAre(channels))
      .WriteChanged(pixels.data(), augmentation, seed, out.data());
  return out;
}

TEST(PixelScaleTest, ChannelsAreOfMeanZeroAndDeviationOneOverTheRowsNamed) {
  std::vector<uint8_t> pixels;
  for (int image = 0; image < 3; ++image) {
    for (int i = 0; i < 4; ++i) {
      // two channels: one that varies, one that is constant
      pixels.push_back(static_cast<uint8_t>(image * 10 + i));
      pixels.push_back(9);
    }
  }
  const std::vector<int32_t> rows = {0, 2};
  const PixelScale scale = FitPixelScale(pixels.data(), 8, 2, rows);
  EXPECT_FLOAT_EQ(scale.mean[0], 11.5f);
  // The values are 0 1 2 3 20 21 22 23.
  EXPECT_FLOAT_EQ(scale.inverse_scale[0], 1 / std::sqrt(1.25f + 100));
  EXPECT_FLOAT_EQ(scale.mean[1], 9);
  EXPECT_EQ(scale.inverse_scale[1], 0);
  std::vector<float> out(12);
  PixelWriter(2, 3, {{1, 2, 3}, {1, 2, 0.5f}}).Write(pixels.data(), out.data());
  EXPECT_FLOAT_EQ(out[0], 0 - 1);
  EXPECT_FLOAT_EQ(out[1], (9 - 2) * 2);
  EXPECT_FLOAT_EQ(out[2], (1 - 3) * 0.5f);
}

TEST(PixelWriterTest, WithoutChangesBothWaysWriteTheSame) {
  const std::vector<uint8_t> pixels = Ramp(3);
  const PixelWriter writer(kSize, 3, {{100, 110, 120}, {0.01f, 0.02f, 0.03f}});
  std::vector<float> a(pixels.size()), b(pixels.size());
  writer.Write(pixels.data(), a.data());
  writer.WriteChanged(pixels.data(), Augmentation(), 5, b.data());
  EXPECT_EQ(a, b);
}

TEST(PixelWriterTest, AFlipMirrorsHalfOfTheImages) {
  const std::vector<uint8_t> pixels = Ramp(1);
  Augmentation augmentation;
  augmentation.flip = true;
  int flipped = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<float> out = Changed(pixels, 1, augmentation, seed);
    const bool mirrored = out[0] != pixels[0];
    flipped += mirrored;
    for (int64_t y = 0; y < kSize; ++y) {
      for (int64_t x = 0; x < kSize; ++x) {
        const int64_t from = mirrored ? kSize - 1 - x : x;
        ASSERT_EQ(out[static_cast<size_t>(y * kSize + x)],
                  pixels[static_cast<size_t>(y * kSize + from)]);
      }
    }
  }
  EXPECT_GT(flipped, 60);
  EXPECT_LT(flipped, 140);
}

TEST(PixelWriterTest, ACropShiftsByNoMoreThanItsShareAndRepeatsEdges) {
  std::vector<uint8_t> pixels(kSize * kSize);
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<uint8_t>(10 * (i / kSize) + i % kSize);  // encodes row and column
  }
  Augmentation augmentation;
  augmentation.crop = 0.34;  // two pixels of six
  std::set<int> downs, rights;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<float> out = Changed(pixels, 1, augmentation, seed);
    const int middle = static_cast<int>(out[3 * kSize + 3]);
    const int down = middle / 10 - 3, right = middle % 10 - 3;
    downs.insert(down);
    rights.insert(right);
    const int corner = 10 * std::max(0, down) + std::max(0, right);
    EXPECT_EQ(out[0], static_cast<float>(corner));
  }
  EXPECT_EQ(downs, (std::set<int>{-2, -1, 0, 1, 2}));
  EXPECT_EQ(rights, (std::set<int>{-2, -1, 0, 1, 2}));
}

TEST(PixelWriterTest, ColoursStayBytesAndGreyStaysGrey) {
  std::vector<uint8_t> grey(kSize * kSize * 3, 120);
  Augmentation augmentation;
  augmentation.colour = 0.5;
  std::set<float> values;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<float> out = Changed(grey, 3, augmentation, seed);
    for (size_t i = 0; i < out.size(); ++i) {
      EXPECT_NEAR(out[i], out[0], 1e-3);
      EXPECT_GE(out[i], 120 * 0.5f - 1);
      EXPECT_LE(out[i], 120 * 1.5f + 1);
    }
    values.insert(out[0]);
  }
  EXPECT_GT(values.size(), 40u);
  for (const float value : Changed(Ramp(3), 3, augmentation, 3)) {
    EXPECT_GE(value, 0);
    EXPECT_LE(value, 255);
  }
}

TEST(PixelWriterTest, ChangesFollowFromTheSeedAlone) {
  const std::vector<uint8_t> pixels = Ramp(3);
  const Augmentation augmentation{true, 0.4, 0.3};
  EXPECT_EQ(Changed(pixels, 3, augmentation, 11), Changed(pixels, 3, augmentation, 11));
  EXPECT_NE(Changed(pixels, 3, augmentation, 11), Changed(pixels, 3, augmentation, 12));
}

}  // namespace
}  // namespace traind
