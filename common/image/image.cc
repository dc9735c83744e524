#include "common/image/image.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace traind {
namespace {

// Pillow's fixed point (libImaging/Resample.c): what is left of 32 bits beside the 8 of a
// value and 2 for what filters overshoot.
constexpr int kPrecisionBits = 32 - 8 - 2;

// What each output takes of one line: `count` inputs from `first` on.
struct Taps {
  int64_t first = 0, count = 0;
  std::vector<int32_t> weights;
};

std::vector<Taps> BilinearTaps(int64_t in_begin, int64_t in_end, int64_t in_size,
                               int64_t out_size) {
  const double scale = static_cast<double>(in_end - in_begin) / static_cast<double>(out_size);
  const double support = std::max(1.0, scale);
  std::vector<Taps> taps(static_cast<size_t>(out_size));
  std::vector<double> weights;
  for (int64_t out = 0; out < out_size; ++out) {
    const double centre = static_cast<double>(in_begin) + (static_cast<double>(out) + 0.5) * scale;
    Taps& tap = taps[static_cast<size_t>(out)];
    tap.first = std::max<int64_t>(0, static_cast<int64_t>(centre - support + 0.5));
    tap.count = std::min(in_size, static_cast<int64_t>(centre + support + 0.5)) - tap.first;
    weights.clear();
    double sum = 0;
    for (int64_t i = 0; i < tap.count; ++i) {
      const double x = (static_cast<double>(i + tap.first) - centre + 0.5) * (1.0 / support);
      weights.push_back(std::max(0.0, 1.0 - std::abs(x)));
      sum += weights.back();
    }
    for (const double weight : weights) {
      const double part = sum != 0 ? weight / sum : weight;
      tap.weights.push_back(static_cast<int32_t>(0.5 + part * (1 << kPrecisionBits)));
    }
  }
  return taps;
}

uint8_t Rounded(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kPrecisionBits, 0, 255));
}

// in: [height, width, channels]; taps along the width.
std::vector<uint8_t> ResizeLines(const Image& image, int64_t first_line, int64_t lines,
                                 const std::vector<Taps>& taps) {
  const int64_t channels = image.channels;
  std::vector<uint8_t> out(static_cast<size_t>(lines * channels) * taps.size());
  uint8_t* to = out.data();
  for (int64_t line = 0; line < lines; ++line) {
    const uint8_t* from = image.pixels.data() + (first_line + line) * image.width * channels;
    for (const Taps& tap : taps) {
      for (int64_t c = 0; c < channels; ++c) {
        int32_t sum = 1 << (kPrecisionBits - 1);
        const uint8_t* at = from + tap.first * channels + c;
        for (int64_t i = 0; i < tap.count; ++i) {
          sum += tap.weights[static_cast<size_t>(i)] * at[i * channels];
        }
        *to++ = Rounded(sum);
      }
    }
  }
  return out;
}

// lines: those of the image from first_line on, `stride` values each.
std::vector<uint8_t> ResizeColumns(const std::vector<uint8_t>& lines, int64_t first_line,
                                   int64_t stride, const std::vector<Taps>& taps) {
  std::vector<uint8_t> out(static_cast<size_t>(stride) * taps.size());
  std::vector<int32_t> sums(static_cast<size_t>(stride));
  uint8_t* to = out.data();
  for (const Taps& tap : taps) {
    std::fill(sums.begin(), sums.end(), 1 << (kPrecisionBits - 1));
    for (int64_t i = 0; i < tap.count; ++i) {
      const int32_t weight = tap.weights[static_cast<size_t>(i)];
      const uint8_t* from = lines.data() + (tap.first - first_line + i) * stride;
      for (int64_t k = 0; k < stride; ++k) sums[static_cast<size_t>(k)] += weight * from[k];
    }
    for (const int32_t sum : sums) *to++ = Rounded(sum);
  }
  return out;
}

}  // namespace

absl::Status CheckImageSize(int64_t height, int64_t width) {
  if (height > 0 && width > 0 && height <= kMostPixels / width) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("claims to have ", width, " x ", height,
                                                 " pixels; at most ", kMostPixels, " are read"));
}

Image WithChannels(Image image, int64_t channels) {
  if (image.channels == channels) return image;
  Image out{image.height, image.width, channels, {}};
  const int64_t count = image.height * image.width;
  out.pixels.resize(static_cast<size_t>(count * channels));
  const uint8_t* from = image.pixels.data();
  uint8_t* to = out.pixels.data();
  for (int64_t i = 0; i < count; ++i) {
    if (channels == 3) {
      for (int64_t c = 0; c < 3; ++c) to[i * 3 + c] = from[i];
    } else {
      // 0.299, 0.587 and 0.114 in 65536ths
      const uint8_t* rgb = from + i * 3;
      to[i] =
          static_cast<uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
    }
  }
  return out;
}

Image CropAndResize(const Image& image, int64_t size) {
  const int64_t side = std::min(image.height, image.width);
  const int64_t left = (image.width - side) / 2, top = (image.height - side) / 2;
  const std::vector<Taps> across = BilinearTaps(left, left + side, image.width, size);
  const std::vector<Taps> down = BilinearTaps(top, top + side, image.height, size);
  const int64_t first = down.front().first;
  const int64_t lines = down.back().first + down.back().count - first;
  Image out{size, size, image.channels, {}};
  out.pixels =
      ResizeColumns(ResizeLines(image, first, lines, across), first, size * image.channels, down);
  return out;
}

}  // namespace traind
