// The changes of images against torchvision's (tests/golden/rand_augment_golden.py).
#include "worker/data/rand_augment.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/data/image_pixels.h"

namespace traind {
namespace {

constexpr int64_t kSize = 24, kChannels = 3;
constexpr int kMagnitude = 14;
constexpr size_t kBytes = kSize * kSize * kChannels;

class RandAugmentTest : public testing::Test {
 protected:
  RandAugmentTest() {
    bytes_ = ReadFile("tests/golden/rand_augment.safetensors").value();
    file_ = ParseSafetensors(bytes_).value();
    for (const float value : Floats("in.image", kBytes)) {
      image_.push_back(static_cast<uint8_t>(value));
    }
  }
  std::vector<float> Floats(const std::string& name, int64_t size) {
    const auto values = FloatsOf(file_, name, size);
    EXPECT_TRUE(values.ok()) << values.status();
    return *values;
  }
  bool Has(const std::string& name) const { return file_.tensors.count(name) > 0; }

  std::string bytes_;
  SafetensorsFile file_;
  std::vector<uint8_t> image_;
};

TEST_F(RandAugmentTest, EachChangeIsTorchvisions) {
  for (int number = 0; number < kImageChanges; ++number) {
    const auto change = static_cast<ImageChange>(number);
    SCOPED_TRACE(number);
    const std::vector<float> strength = Floats(absl::StrCat("strength.", number), 2);
    EXPECT_EQ(HasSign(change), strength[1] != 0);
    const double own = StrengthOf(change, kMagnitude, kSize);
    const bool translates =
        change == ImageChange::kTranslateX || change == ImageChange::kTranslateY;
    EXPECT_NEAR(own, translates ? std::floor(strength[0]) : strength[0], 1e-4);
    for (const char* const sign : {"plus", "minus"}) {
      const std::string name = absl::StrCat("out.", number, ".", sign);
      if (!Has(name)) continue;
      std::vector<uint8_t> changed = image_;
      ChangeImage(change, sign[0] == 'm' ? -own : own, kSize, kChannels, absl::MakeSpan(changed));
      const std::vector<float> wanted = Floats(name, kBytes);
      int differ = 0, off_by_one = 0;
      for (size_t i = 0; i < kBytes; ++i) {
        const int away = std::abs(static_cast<int>(wanted[i]) - changed[i]);
        off_by_one += away == 1;
        differ += away > 1;
      }
      // Where a place lies between two pixels, rounding decides which one is taken.
      const bool moves = change >= ImageChange::kShearX && change <= ImageChange::kRotate;
      EXPECT_LE(differ, moves ? static_cast<int>(kBytes) / 50 : 0) << name;
      EXPECT_LE(moves ? 0 : off_by_one, static_cast<int>(kBytes) / 100) << name;
    }
  }
}

TEST_F(RandAugmentTest, ChangesFollowFromTheSeedAlone) {
  const PixelWriter writer(kSize, kChannels, {{0, 0, 0}, {1, 1, 1}});
  Augmentation augmentation;
  EXPECT_FALSE(augmentation.any());
  augmentation.rand_changes = 2;
  augmentation.rand_magnitude = 9;
  EXPECT_TRUE(augmentation.any());
  std::set<std::vector<float>> seen;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::vector<float> once(kBytes), again(kBytes);
    writer.WriteChanged(image_.data(), augmentation, seed, once.data());
    writer.WriteChanged(image_.data(), augmentation, seed, again.data());
    EXPECT_EQ(once, again);
    for (const float value : once) {
      ASSERT_GE(value, 0);
      ASSERT_LE(value, 255);
    }
    seen.insert(once);
  }
  EXPECT_GT(seen.size(), 30);
}

TEST_F(RandAugmentTest, GreyImagesAreChangedAsWell) {
  std::vector<uint8_t> grey(kSize * kSize);
  for (size_t i = 0; i < grey.size(); ++i) grey[i] = image_[3 * i];
  for (int number = 0; number < kImageChanges; ++number) {
    std::vector<uint8_t> changed = grey;
    const auto change = static_cast<ImageChange>(number);
    ChangeImage(change, StrengthOf(change, 30, kSize), kSize, 1, absl::MakeSpan(changed));
    const bool stays = change == ImageChange::kNone || change == ImageChange::kColour;
    EXPECT_EQ(changed == grey, stays) << number;
  }
}

}  // namespace
}  // namespace traind
