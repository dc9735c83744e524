// Image files in memory, decoded.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>

#include "common/data/image/image.h"

namespace traind {

enum class ImageFormat { kUnknown, kJpeg, kPng };

// By the first bytes.
ImageFormat FormatOf(absl::string_view bytes);

struct DecodeOptions {
  int64_t channels = 3;  // 1 or 3
  // A JPEG whose shorter side is a multiple of this is decoded at 1/2, 1/4 or 1/8 of its
  // size, with no side shorter than twice this: what CropAndResize makes of it is almost
  // the same, and several times as fast. 0: always whole.
  int64_t least_side = 0;
  // Pixels of a JPEG that CropAndResize to least_side does not look at may be left as zeros.
  bool middle = false;
};

// JPEG (baseline, progressive, grey, YCbCr, CMYK) and PNG (all kinds; of 16 bits the upper
// eight count; opacity is left out), as Pillow decodes and converts them.
// InvalidArgument: neither of them, cut, damaged, or of absurd size; the message says which
// and goes on from "NAME ".
// Threads: any.
absl::StatusOr<Image> DecodeImage(absl::string_view bytes, const DecodeOptions& options);

// Of one format; with the channels that the file has (1 or 3).
absl::StatusOr<Image> DecodeJpeg(absl::string_view bytes, const DecodeOptions& options);
absl::StatusOr<Image> DecodePng(absl::string_view bytes);

}  // namespace traind
