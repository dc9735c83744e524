// Pictures in memory, and what makes them of one size.
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

// More than so many pixels are refused before they are given memory.
inline constexpr int64_t kMostPixels = int64_t{1} << 26;

// InvalidArgument: a side of 0, or more than kMostPixels.
absl::Status CheckImageSize(int64_t height, int64_t width);

// The image with 1 or 3 channels: grey is 0.299 R + 0.587 G + 0.114 B as Pillow rounds
// it, colour from grey repeats it. REQUIRES: image.channels is 1 or 3.
Image WithChannels(Image image, int64_t channels);

// Of a side of `length` pixels, those that CropAndResize looks at, where the other side has
// `other`.
struct PixelRange {
  int64_t begin = 0, end = 0;
};
PixelRange SeenPixels(int64_t length, int64_t other, int64_t size);

// The largest square in the middle, made size x size by Pillow's bilinear filter, which
// takes the mean over an area where it makes images smaller; the same to the last bit.
Image CropAndResize(const Image& image, int64_t size);

}  // namespace traind
