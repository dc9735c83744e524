// Images in memory, and how they are brought to one size.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <vector>

namespace traind {

struct Image {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;  // [height, width, channels]
};

// Images of more pixels are refused before memory is allocated for them.
inline constexpr int64_t kMostPixels = int64_t{1} << 26;

// InvalidArgument: a side is 0, or there are more than kMostPixels.
absl::Status CheckImageSize(int64_t height, int64_t width);

// Converts to 1 or 3 channels. Grey is 0.299 R + 0.587 G + 0.114 B with Pillow's rounding; colour
// from grey repeats the grey value. REQUIRES: image.channels is 1 or 3.
Image WithChannels(Image image, int64_t channels);

// The pixels of a side of `length` that CropAndResize uses, where the other side has `other`
// pixels.
struct PixelRange {
  int64_t begin = 0, end = 0;
};
PixelRange SeenPixels(int64_t length, int64_t other, int64_t size);

// Crops the largest centred square and resizes it to size x size with Pillow's bilinear filter,
// which averages over an area when it shrinks an image. The result equals Pillow's to the last bit.
Image CropAndResize(const Image& image, int64_t size);

}  // namespace traind
