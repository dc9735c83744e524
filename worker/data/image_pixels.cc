#include "worker/data/image_pixels.h"

#include <algorithm>
#include <cmath>

#include "worker/data/rand_augment.h"
#include "worker/data/random.h"

namespace traind {
namespace {

constexpr float kGrey[3] = {0.299f, 0.587f, 0.114f};

// Returns a factor in [1 - share, 1 + share).
float Factor(double share, Random& random) {
  return static_cast<float>(1 + share * (2 * random.Uniform() - 1));
}

// Changes brightness, then contrast (around the image's mean grey), then saturation.
void ChangeColour(int64_t pixels, int64_t channels, double share, Random& random, float* values) {
  const float brightness = Factor(share, random);
  const float contrast = Factor(share, random);
  const float saturation = Factor(share, random);
  const auto grey_of = [channels](const float* pixel) {
    if (channels < 3) return pixel[0];
    return kGrey[0] * pixel[0] + kGrey[1] * pixel[1] + kGrey[2] * pixel[2];
  };
  double sum = 0;
  for (int64_t i = 0; i < pixels; ++i) sum += grey_of(values + i * channels);
  const float mean = brightness * static_cast<float>(sum / static_cast<double>(pixels));
  for (int64_t i = 0; i < pixels; ++i) {
    float* pixel = values + i * channels;
    const float grey = grey_of(pixel);
    for (int64_t c = 0; c < channels; ++c) {
      const float saturated = channels < 3 ? pixel[c] : grey + saturation * (pixel[c] - grey);
      const float value = mean + contrast * (brightness * saturated - mean);
      pixel[c] = std::clamp(value, 0.0f, 255.0f);
    }
  }
}

}  // namespace

PixelScale FitPixelScale(const uint8_t* pixels, int64_t stride, int64_t channels,
                         absl::Span<const int32_t> rows) {
  std::vector<uint64_t> sum(static_cast<size_t>(channels)), squares(sum.size());
  for (const int32_t row : rows) {
    const uint8_t* from = pixels + int64_t{row} * stride;
    for (int64_t c = 0; c < channels; ++c) {
      uint64_t some = 0, some_squares = 0;
      for (int64_t i = c; i < stride; i += channels) {
        const uint32_t value = from[i];
        some += value;
        some_squares += value * value;
      }
      sum[static_cast<size_t>(c)] += some;
      squares[static_cast<size_t>(c)] += some_squares;
    }
  }
  PixelScale scale;
  const double count = static_cast<double>(rows.size()) * static_cast<double>(stride / channels);
  for (size_t c = 0; c < sum.size(); ++c) {
    const double mean = count > 0 ? static_cast<double>(sum[c]) / count : 0;
    const double square = count > 0 ? static_cast<double>(squares[c]) / count : 0;
    const double variance = std::max(0.0, square - mean * mean);
    scale.mean.push_back(static_cast<float>(mean));
    scale.inverse_scale.push_back(variance > 1e-6 ? static_cast<float>(1 / std::sqrt(variance))
                                                  : 0.0f);
  }
  return scale;
}

PixelWriter::PixelWriter(int64_t size, int64_t channels, const PixelScale& scale)
    : size_(size), channels_(channels) {
  for (int64_t x = 0; x < size; ++x) {
    for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
      factor_.push_back(scale.inverse_scale[c]);
      offset_.push_back(-scale.mean[c] * scale.inverse_scale[c]);
    }
  }
}

void PixelWriter::Write(const uint8_t* pixels, float* out) const {
  const int64_t line = size_ * channels_;
  const float *const factor = factor_.data(), *const offset = offset_.data();
  for (int64_t y = 0; y < size_; ++y) {
    const uint8_t* from = pixels + y * line;
    float* to = out + y * line;
    for (int64_t i = 0; i < line; ++i) to[i] = static_cast<float>(from[i]) * factor[i] + offset[i];
  }
}

void PixelWriter::WriteChanged(const uint8_t* pixels, const Augmentation& augmentation,
                               uint64_t seed, float* out) const {
  std::vector<uint8_t> changed;
  if (augmentation.rand_changes > 0) {
    constexpr uint64_t kOfRandAugment = 0x72616e64;
    Random draws(seed ^ kOfRandAugment);
    changed.assign(pixels, pixels + size_ * size_ * channels_);
    RandAugment(augmentation.rand_changes, augmentation.rand_magnitude, size_, channels_, draws,
                absl::MakeSpan(changed));
    pixels = changed.data();
  }
  Random random(seed);
  const bool flip = augmentation.flip && random.Below(2) == 1;
  const auto most = static_cast<uint64_t>(augmentation.crop * static_cast<double>(size_));
  const auto shift = [&] {
    return static_cast<int64_t>(random.Below(2 * most + 1)) - static_cast<int64_t>(most);
  };
  const int64_t down = most > 0 ? shift() : 0, right = most > 0 ? shift() : 0;
  const int64_t line = size_ * channels_, last = size_ - 1;
  float* to = out;
  for (int64_t y = 0; y < size_; ++y) {
    const uint8_t* from = pixels + std::clamp<int64_t>(y + down, 0, last) * line;
    for (int64_t x = 0; x < size_; ++x) {
      const int64_t source = std::clamp<int64_t>((flip ? last - x : x) + right, 0, last);
      for (int64_t c = 0; c < channels_; ++c)
        *to++ = static_cast<float>(from[source * channels_ + c]);
    }
  }
  if (augmentation.colour > 0) {
    ChangeColour(size_ * size_, channels_, augmentation.colour, random, out);
  }
  const float *const factor = factor_.data(), *const offset = offset_.data();
  for (int64_t y = 0; y < size_; ++y) {
    float* values = out + y * line;
    for (int64_t i = 0; i < line; ++i) values[i] = values[i] * factor[i] + offset[i];
  }
}

}  // namespace traind
