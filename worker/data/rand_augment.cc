#include "worker/data/rand_augment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace traind {
namespace {

constexpr int kMostMagnitude = 30;
constexpr double kDegrees = 3.14159265358979323846 / 180;

// Bytes are cut off, not rounded, as in torchvision.
uint8_t Byte(float value) { return static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f)); }

// Each pixel comes from the place (a x + b y + c, d x + e y + f) of the image, where x and y are
// counted from its upper left corner to the pixel's middle.
struct Affine {
  double a = 1, b = 0, c = 0, d = 0, e = 1, f = 0;
};

void Move(const Affine& from, int64_t size, int64_t channels, absl::Span<uint8_t> pixels) {
  const std::vector<uint8_t> before(pixels.begin(), pixels.end());
  uint8_t* to = pixels.data();
  for (int64_t y = 0; y < size; ++y) {
    for (int64_t x = 0; x < size; ++x, to += channels) {
      const double px = static_cast<double>(x) + 0.5, py = static_cast<double>(y) + 0.5;
      const auto sx = static_cast<int64_t>(std::floor(from.a * px + from.b * py + from.c));
      const auto sy = static_cast<int64_t>(std::floor(from.d * px + from.e * py + from.f));
      if (sx < 0 || sy < 0 || sx >= size || sy >= size) {
        std::fill_n(to, channels, uint8_t{0});
      } else {
        std::copy_n(before.data() + (sy * size + sx) * channels, channels, to);
      }
    }
  }
}

Affine RotationBy(double degrees, int64_t size) {
  const double cosine = std::cos(degrees * kDegrees), sine = std::sin(degrees * kDegrees);
  const double middle = static_cast<double>(size) / 2;
  return {cosine, -sine,  middle - middle * (cosine - sine),
          sine,   cosine, middle - middle * (sine + cosine)};
}

uint8_t GreyOf(const uint8_t* pixel, int64_t channels) {
  if (channels < 3) return pixel[0];
  return Byte(0.2989f * static_cast<float>(pixel[0]) + 0.587f * static_cast<float>(pixel[1]) +
              0.114f * static_cast<float>(pixel[2]));
}

// Each byte becomes factor x itself + (1 - factor) x other(index).
template <class Other>
void Blend(double factor, absl::Span<uint8_t> pixels, const Other& other) {
  const auto own = static_cast<float>(factor), rest = static_cast<float>(1 - factor);
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = Byte(own * static_cast<float>(pixels[i]) + rest * other(i));
  }
}

void ChangeContrast(double factor, int64_t channels, absl::Span<uint8_t> pixels) {
  double sum = 0;
  const auto step = static_cast<size_t>(channels);
  for (size_t i = 0; i < pixels.size(); i += step) sum += GreyOf(pixels.data() + i, channels);
  const auto mean = static_cast<float>(sum / static_cast<double>(pixels.size() / step));
  Blend(factor, pixels, [mean](size_t) { return mean; });
}

void ChangeColour(double factor, int64_t channels, absl::Span<uint8_t> pixels) {
  if (channels < 3) return;
  const auto step = static_cast<size_t>(channels);
  float grey = 0;
  Blend(factor, pixels, [&](size_t i) {
    if (i % step == 0) grey = GreyOf(pixels.data() + i, channels);
    return grey;
  });
}

// The other end of the scale is the image smoothed by its neighbours; its edge stays.
void ChangeSharpness(double factor, int64_t size, int64_t channels, absl::Span<uint8_t> pixels) {
  if (size <= 2) return;
  const std::vector<uint8_t> before(pixels.begin(), pixels.end());
  const int64_t line = size * channels;
  Blend(factor, pixels, [&](size_t i) {
    const auto at = static_cast<int64_t>(i);
    const int64_t y = at / line, x = at % line / channels;
    if (y == 0 || x == 0 || y == size - 1 || x == size - 1) return static_cast<float>(before[i]);
    int sum = 4 * before[i];
    for (const int64_t row : {-line, int64_t{0}, line}) {
      for (const int64_t column : {-channels, int64_t{0}, channels}) {
        sum += before[static_cast<size_t>(at + row + column)];
      }
    }
    return std::nearbyint(static_cast<float>(sum) / 13.0f);
  });
}

void StretchContrast(int64_t channels, absl::Span<uint8_t> pixels) {
  const auto step = static_cast<size_t>(channels);
  for (size_t c = 0; c < step; ++c) {
    uint8_t least = 255, most = 0;
    for (size_t i = c; i < pixels.size(); i += step) {
      least = std::min(least, pixels[i]);
      most = std::max(most, pixels[i]);
    }
    if (least >= most) continue;
    const float scale = 255.0f / static_cast<float>(most - least);
    for (size_t i = c; i < pixels.size(); i += step) {
      pixels[i] = Byte(static_cast<float>(pixels[i] - least) * scale);
    }
  }
}

void Equalize(int64_t channels, absl::Span<uint8_t> pixels) {
  constexpr size_t kValues = 256;
  const auto step = static_cast<size_t>(channels);
  for (size_t c = 0; c < step; ++c) {
    std::array<int64_t, kValues> counts{};
    for (size_t i = c; i < pixels.size(); i += step) ++counts[pixels[i]];
    int64_t last = 0, sum = 0;
    for (const int64_t count : counts) {
      if (count > 0) last = count;
      sum += count;
    }
    const int64_t share = (sum - last) / static_cast<int64_t>(kValues - 1);
    if (share == 0) continue;
    std::array<uint8_t, kValues> becomes{};
    int64_t below = 0;  // bytes of smaller values
    for (size_t value = 0; value < kValues; ++value) {
      const int64_t place = value == 0 ? 0 : (below + share / 2) / share;
      becomes[value] = static_cast<uint8_t>(std::min<int64_t>(255, place));
      below += counts[value];
    }
    for (size_t i = c; i < pixels.size(); i += step) pixels[i] = becomes[pixels[i]];
  }
}

}  // namespace

double StrengthOf(ImageChange change, int magnitude, int64_t size) {
  const double share = static_cast<double>(magnitude) / kMostMagnitude;
  switch (change) {
    case ImageChange::kShearX:
    case ImageChange::kShearY:
      return 0.3 * share;
    case ImageChange::kTranslateX:
    case ImageChange::kTranslateY:
      return std::floor(150.0 / 331.0 * static_cast<double>(size) * share);
    case ImageChange::kRotate:
      return 30 * share;
    case ImageChange::kBrightness:
    case ImageChange::kColour:
    case ImageChange::kContrast:
    case ImageChange::kSharpness:
      return static_cast<double>(static_cast<float>(0.9 * share));  // as torchvision has it
    case ImageChange::kPosterize:
      return 8 - std::nearbyint(4 * share);
    case ImageChange::kSolarize:
      return 255 * (1 - share);
    case ImageChange::kNone:
    case ImageChange::kAutoContrast:
    case ImageChange::kEqualize:
      return 0;
  }
  return 0;
}

bool HasSign(ImageChange change) {
  return change >= ImageChange::kShearX && change <= ImageChange::kSharpness;
}

void ChangeImage(ImageChange change, double strength, int64_t size, int64_t channels,
                 absl::Span<uint8_t> pixels) {
  switch (change) {
    case ImageChange::kNone:
      return;
    case ImageChange::kShearX:
      return Move({1, strength, 0, 0, 1, 0}, size, channels, pixels);
    case ImageChange::kShearY:
      return Move({1, 0, 0, strength, 1, 0}, size, channels, pixels);
    case ImageChange::kTranslateX:
      return Move({1, 0, -strength, 0, 1, 0}, size, channels, pixels);
    case ImageChange::kTranslateY:
      return Move({1, 0, 0, 0, 1, -strength}, size, channels, pixels);
    case ImageChange::kRotate:
      return Move(RotationBy(strength, size), size, channels, pixels);
    case ImageChange::kBrightness:
      return Blend(1 + strength, pixels, [](size_t) { return 0.0f; });
    case ImageChange::kColour:
      return ChangeColour(1 + strength, channels, pixels);
    case ImageChange::kContrast:
      return ChangeContrast(1 + strength, channels, pixels);
    case ImageChange::kSharpness:
      return ChangeSharpness(1 + strength, size, channels, pixels);
    case ImageChange::kPosterize:
      for (uint8_t& byte : pixels)
        byte &= static_cast<uint8_t>(256 - (1 << (8 - static_cast<int>(strength))));
      return;
    case ImageChange::kSolarize:
      for (uint8_t& byte : pixels) {
        if (byte >= strength) byte = static_cast<uint8_t>(255 - byte);
      }
      return;
    case ImageChange::kAutoContrast:
      return StretchContrast(channels, pixels);
    case ImageChange::kEqualize:
      return Equalize(channels, pixels);
  }
}

void RandAugment(int count, int magnitude, int64_t size, int64_t channels, Random& random,
                 absl::Span<uint8_t> pixels) {
  for (int i = 0; i < count; ++i) {
    const auto change = static_cast<ImageChange>(random.Below(kImageChanges));
    double strength = StrengthOf(change, magnitude, size);
    if (HasSign(change) && random.Below(2) == 1) strength = -strength;
    ChangeImage(change, strength, size, channels, pixels);
  }
}

}  // namespace traind
