#include "common/data/image/image.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "common/base/target_clones.h"

namespace traind {
namespace {

// Pillow's fixed point (libImaging/Resample.c): 32 bits less the 8 of a value and 2 for overshoot
// of the filters.
constexpr int kPrecisionBits = 32 - 8 - 2;

// The inputs of one output value: `count` values of a line from `first` on.
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

constexpr int64_t kLanes = 16;  // values transposed at once
constexpr int64_t kWide = 64;   // values summed at once

using Bytes16 = uint8_t __attribute__((vector_size(kLanes)));

// Interleaves the first (or the second) halves of a and b, value by value.
TRAIND_ALWAYS_INLINE Bytes16 FirstHalves(Bytes16 a, Bytes16 b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
TRAIND_ALWAYS_INLINE Bytes16 SecondHalves(Bytes16 a, Bytes16 b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
}

// Transposes 16 x 16 values: to[j][i] = from[i][j]; strides are in values.
TRAIND_ALWAYS_INLINE void TransposeBlock(const uint8_t* from, int64_t from_stride, uint8_t* to,
                                         int64_t to_stride) {
  Bytes16 a[kLanes], b[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) std::memcpy(&a[i], from + i * from_stride, kLanes);
  for (int round = 0; round < 4; ++round) {  // each round rotates the bits of an index by one
    for (int64_t i = 0; i < kLanes / 2; ++i) {
      b[2 * i] = FirstHalves(a[i], a[i + kLanes / 2]);
      b[2 * i + 1] = SecondHalves(a[i], a[i + kLanes / 2]);
    }
    for (int64_t i = 0; i < kLanes; ++i) a[i] = b[i];
  }
  for (int64_t i = 0; i < kLanes; ++i) std::memcpy(to + i * to_stride, &a[i], kLanes);
}

// Transposes [rows, columns] to [columns, rows].
TRAIND_ALWAYS_INLINE void Transpose(const uint8_t* from, int64_t from_stride, int64_t rows,
                                    int64_t columns, uint8_t* to, int64_t to_stride) {
  const int64_t whole_rows = rows / kLanes * kLanes, whole_columns = columns / kLanes * kLanes;
  for (int64_t i = 0; i < whole_rows; i += kLanes) {
    for (int64_t j = 0; j < whole_columns; j += kLanes) {
      TransposeBlock(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; ++j) {
      to[j * to_stride + i] = from[i * from_stride + j];
    }
  }
}

// Computes out[j] = the sum over i of weights[i] * from[i * step + j], rounded, for j < kWide. It
// uses loops because vector types would be lowered before the function is cloned for its targets.
TRAIND_ALWAYS_INLINE void WeightedSum(const uint8_t* __restrict__ from, int64_t step,
                                      const std::vector<int32_t>& weights,
                                      uint8_t* __restrict__ out) {
  int32_t sums[kWide];
  for (int64_t j = 0; j < kWide; ++j) sums[j] = 1 << (kPrecisionBits - 1);
  for (const int32_t weight : weights) {
#pragma omp simd
    for (int64_t j = 0; j < kWide; ++j) sums[j] += weight * from[j];
    from += step;
  }
#pragma omp simd
  for (int64_t j = 0; j < kWide; ++j) {
    out[j] = static_cast<uint8_t>(std::clamp(sums[j] >> kPrecisionBits, 0, 255));
  }
}

// Resizes along the width, kWide lines side by side. out: [lines, taps, channels].
TRAIND_TARGET_CLONES void ResizeLines(const Image& image, int64_t first_line, int64_t lines,
                                      const std::vector<Taps>& taps, uint8_t* out) {
  const int64_t channels = image.channels, stride = image.width * channels;
  const int64_t begin = taps.front().first * channels;
  const int64_t end = (taps.back().first + taps.back().count) * channels;
  const int64_t out_stride = static_cast<int64_t>(taps.size()) * channels;
  std::vector<uint8_t> across(static_cast<size_t>((end - begin) * kWide));
  std::vector<uint8_t> resized(static_cast<size_t>(out_stride * kWide));
  for (int64_t line = 0; line < lines; line += kWide) {
    const int64_t count = std::min(kWide, lines - line);
    const uint8_t* from = image.pixels.data() + (first_line + line) * stride + begin;
    Transpose(from, stride, count, end - begin, across.data(), kWide);
    uint8_t* to = resized.data();
    for (const Taps& tap : taps) {
      for (int64_t c = 0; c < channels; ++c, to += kWide) {
        WeightedSum(across.data() + (tap.first * channels - begin + c) * kWide, channels * kWide,
                    tap.weights, to);
      }
    }
    Transpose(resized.data(), kWide, out_stride, count, out + line * out_stride, out_stride);
  }
}

// Resizes along the height. lines: the image's lines from first_line on, `stride` values each, and
// kWide values beyond. out: [taps, stride].
TRAIND_TARGET_CLONES void ResizeColumns(const uint8_t* lines, int64_t first_line, int64_t stride,
                                        const std::vector<Taps>& taps, uint8_t* out) {
  uint8_t last[kWide];
  for (const Taps& tap : taps) {
    const uint8_t* from = lines + (tap.first - first_line) * stride;
    int64_t k = 0;
    for (; k + kWide <= stride; k += kWide) WeightedSum(from + k, stride, tap.weights, out + k);
    if (k < stride) {
      WeightedSum(from + k, stride, tap.weights, last);
      std::memcpy(out + k, last, static_cast<size_t>(stride - k));
    }
    out += stride;
  }
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
      // The weights 0.299, 0.587 and 0.114 in units of 1/65536.
      const uint8_t* rgb = from + i * 3;
      to[i] =
          static_cast<uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
    }
  }
  return out;
}

PixelRange SeenPixels(int64_t length, int64_t other, int64_t size) {
  const int64_t side = std::min(length, other), begin = (length - side) / 2;
  const int64_t support = side / size + 2;  // a filter reaches beyond the square
  return {std::max<int64_t>(0, begin - support), std::min(length, begin + side + support)};
}

Image CropAndResize(const Image& image, int64_t size) {
  if (image.height == size && image.width == size) return image;  // the filter would change nothing
  const int64_t side = std::min(image.height, image.width);
  const int64_t left = (image.width - side) / 2, top = (image.height - side) / 2;
  const std::vector<Taps> across = BilinearTaps(left, left + side, image.width, size);
  const std::vector<Taps> down = BilinearTaps(top, top + side, image.height, size);
  const int64_t first = down.front().first;
  const int64_t lines = down.back().first + down.back().count - first;
  const int64_t stride = size * image.channels;
  std::vector<uint8_t> narrowed(static_cast<size_t>(lines * stride + kWide));
  ResizeLines(image, first, lines, across, narrowed.data());
  Image out{size, size, image.channels, {}};
  out.pixels.resize(static_cast<size_t>(size * stride));
  ResizeColumns(narrowed.data(), first, stride, down, out.pixels.data());
  return out;
}

}  // namespace traind
