// Decodes image files that are in memory.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>

#include "common/data/image/image.h"

namespace traind {

enum class ImageFormat { kUnknown, kJpeg, kPng };

// Recognizes the format by the first bytes.
ImageFormat FormatOf(absl::string_view bytes);

struct DecodeOptions {
  int64_t channels = 3;  // 1 or 3
  // A JPEG whose shorter side is a multiple of this is decoded at 1/2, 1/4 or 1/8 of its size, with
  // no side shorter than twice this. CropAndResize makes almost the same image of that, several
  // times as fast. 0: always decode at full size.
  int64_t least_side = 0;
  // With true, pixels of a JPEG that CropAndResize to least_side does not use may be left as zeros.
  bool middle = false;
};

// Decodes JPEG (baseline, progressive, grey, YCbCr, CMYK) and PNG (all kinds; 16-bit samples keep
// their upper eight bits, transparency is dropped) as Pillow decodes and converts them.
// InvalidArgument: the bytes are neither of them, cut, damaged, or of absurd size; the message is
// meant to follow "NAME ".
// Threads: any.
absl::StatusOr<Image> DecodeImage(absl::string_view bytes, const DecodeOptions& options);

// Decode one format each and keep the file's channels (1 or 3).
absl::StatusOr<Image> DecodeJpeg(absl::string_view bytes, const DecodeOptions& options);
absl::StatusOr<Image> DecodePng(absl::string_view bytes);

// Decodes a PNG whose pixels are numbers of classes: grey values and indices of a palette as the
// file has them, of 1 to 8 bits. Colours keep their three channels. InvalidArgument: as
// DecodeImage; also pixels of 16 bits.
absl::StatusOr<Image> DecodePngLabels(absl::string_view bytes);

}  // namespace traind
