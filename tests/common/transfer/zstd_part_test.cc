#include "common/transfer/zstd_part.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <random>

namespace traind {
namespace {

std::string Text(size_t bytes) {
  std::string text;
  for (int row = 0; text.size() < bytes; ++row) text += std::to_string(row * 37 % 101) + ",0.5,a\n";
  text.resize(bytes);
  return text;
}

std::string Noise(size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::string noise(bytes, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  return noise;
}

TEST(ZstdPart, APartOfATableComesBackAsItWas) {
  PartPacker packer;
  for (const size_t bytes : {100U, 5000U, 1U << 20}) {
    const std::string text = Text(bytes);
    std::string part = text;
    ASSERT_TRUE(packer.Pack(part)) << bytes;
    EXPECT_LE(part.size(), bytes - bytes / 8);
    const auto back = UnpackPart(part);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, text);
  }
}

TEST(ZstdPart, WhatDoesNotBecomeSmallerStaysAndIsLookedAtLessAndLess) {
  PartPacker packer;
  const std::string noise = Noise(1 << 16, 1);
  std::string part = noise;
  EXPECT_FALSE(packer.Pack(part));
  EXPECT_EQ(part, noise);
  std::string empty;
  EXPECT_FALSE(packer.Pack(empty));
  for (int i = 0; i < 300; ++i) {
    part = noise;
    ASSERT_FALSE(packer.Pack(part));
  }
  // Text is found again within 64 parts, and then each part of it is taken.
  int passed = 0;
  for (part = Text(1 << 16); !packer.Pack(part); ++passed) part = Text(1 << 16);
  EXPECT_GT(passed, 0);
  EXPECT_LE(passed, 63);
  part = Text(1 << 16);
  EXPECT_TRUE(packer.Pack(part));
}

// Time that passes while parts are sent.
class HandClock final : public Clock {
 public:
  absl::Duration MonotonicNow() const override { return now_; }
  absl::Time WallNow() const override { return absl::UnixEpoch() + now_; }
  void Pass(double seconds) { now_ += absl::Seconds(seconds); }

 private:
  absl::Duration now_ = absl::Seconds(100);
};

// Sends 100 MB and returns the share of the parts that were compressed.
double ShareThatIsPacked(double link_bytes_per_s, double pack_bytes_per_s) {
  HandClock clock;
  PartPacker packer(clock);
  const std::string text = Text(1 << 17);
  int packed = 0, parts = 0;
  for (; parts < 800; ++parts) {
    std::string part = text;
    const bool is_packed = packer.Pack(part);
    packed += is_packed ? 1 : 0;
    if (is_packed) clock.Pass(static_cast<double>(text.size()) / pack_bytes_per_s);
    clock.Pass(static_cast<double>(part.size()) / link_bytes_per_s);
  }
  return static_cast<double>(packed) / parts;
}

TEST(ZstdPart, AFastLinkDoesNotWaitForCompression) {
  EXPECT_GT(ShareThatIsPacked(1e6, 200e6), 0.9);
  EXPECT_GT(ShareThatIsPacked(10e6, 200e6), 0.75);
  // The text becomes much smaller, but the link is faster than the compressor.
  EXPECT_LT(ShareThatIsPacked(100e6, 20e6), 0.5);
}

TEST(ZstdPart, WhatIsNoFrameIsRefused) {
  PartPacker packer;
  const std::string text = Text(1 << 16);
  std::string frame = text;
  ASSERT_TRUE(packer.Pack(frame));
  EXPECT_FALSE(UnpackPart("").ok());
  EXPECT_FALSE(UnpackPart(text).ok());
  EXPECT_FALSE(UnpackPart(frame.substr(0, frame.size() / 2)).ok());
  EXPECT_FALSE(UnpackPart(frame + frame).ok());
  for (size_t at = 0; at < frame.size(); at += 7) {
    std::string flipped = frame;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x55);
    const auto part = UnpackPart(flipped);  // the digest of the file finds what is not found here
    EXPECT_LE(part.ok() ? part->size() : 0, size_t{4} << 20);
  }
}

// A frame of a few bytes may stand for gigabytes.
TEST(ZstdPart, AFrameOfTooManyBytesIsRefusedBeforeItsBytesAreMade) {
  const std::string zeros((4 << 20) + 1, '\0');
  std::string frame(ZSTD_compressBound(zeros.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), zeros.data(), zeros.size(), 1));
  ASSERT_LT(frame.size(), 1000U);
  EXPECT_FALSE(UnpackPart(frame).ok());
  frame.resize(ZSTD_compressBound(zeros.size()));
  frame.resize(ZSTD_compress(frame.data(), frame.size(), zeros.data(), zeros.size() - 1, 1));
  EXPECT_TRUE(UnpackPart(frame).ok());
}

}  // namespace
}  // namespace traind
