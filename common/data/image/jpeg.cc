// jpeglib.h needs stdio.h to be included before it.
#include <absl/status/status.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

#include <algorithm>
#include <string>

#include "common/data/image/decode.h"

namespace traind {
namespace {

// libjpeg's errors end in a longjmp back into Decode. `base` is the first member because libjpeg
// passes a pointer to it back.
struct Errors {
  jpeg_error_mgr base;
  jmp_buf back;
  char message[JMSG_LENGTH_MAX] = "";
};

[[noreturn]] void Fail(j_common_ptr info) {
  auto* errors = reinterpret_cast<Errors*>(info->err);
  info->err->format_message(info, errors->message);
  longjmp(errors->back, 1);
}

// libjpeg fills missing parts of a cut or damaged file with grey and only warns, so a warning is
// treated as an error.
void Emit(j_common_ptr info, int level) {
  if (level < 0) Fail(info);
}

void Ignore(j_common_ptr) {}

int64_t ScaleOf(int64_t shorter, int64_t least_side) {
  int64_t scale = 1;
  while (least_side > 0 && scale < 8 && shorter / (scale * 2) >= least_side * 2) scale *= 2;
  return scale;
}

// Reads all lines, or only those that CropAndResize uses: the others only cost their entropy
// decoding.
void ReadLines(const DecodeOptions& options, jpeg_decompress_struct& info, Image& image) {
  const int64_t height = image.height, width = image.width;
  PixelRange rows{0, height}, columns{0, width};
  if (options.middle && options.least_side > 0) {
    rows = SeenPixels(height, width, options.least_side);
    columns = SeenPixels(width, height, options.least_side);
  }
  // At its border a partial decode differs from the whole, because colours are interpolated there.
  const int64_t block = info.min_DCT_scaled_size;
  const int64_t margin = block * std::max(info.max_h_samp_factor, info.max_v_samp_factor);
  auto first = static_cast<JDIMENSION>(std::max<int64_t>(0, columns.begin - margin));
  auto count = static_cast<JDIMENSION>(std::min(width, columns.end + margin)) - first;
  if (static_cast<int64_t>(count) < width) jpeg_crop_scanline(&info, &first, &count);
  const auto begin = static_cast<JDIMENSION>(std::max<int64_t>(0, rows.begin - margin));
  const auto end = static_cast<JDIMENSION>(std::min(height, rows.end + margin));
  if (begin > 0) jpeg_skip_scanlines(&info, begin);
  const auto read_line = [&] {
    JSAMPROW line = image.pixels.data() + (info.output_scanline * width + first) * image.channels;
    jpeg_read_scanlines(&info, &line, 1);
  };
  while (info.output_scanline < end) read_line();
  // The last line is read because skipping to the end would not detect a cut file.
  if (info.output_scanline + 1 < info.output_height) {
    jpeg_skip_scanlines(&info, info.output_height - 1 - info.output_scanline);
  }
  while (info.output_scanline < info.output_height) read_line();
}

// `image` and `row` have destructors, so they live in the caller, which also makes the status
// texts. Returns false on failure: errors.message says why, or size if the size is wrong.
bool Decode(absl::string_view bytes, const DecodeOptions& options, jpeg_decompress_struct& info,
            Errors& errors, absl::Status& size, Image& image) {
  if (setjmp(errors.back) != 0) return false;
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&info, TRUE);
  const int64_t height = info.image_height, width = info.image_width;
  size = CheckImageSize(height, width);
  if (!size.ok()) return false;
  const bool grey = info.num_components == 1;
  const bool cmyk = info.num_components == 4;
  info.out_color_space = grey ? JCS_GRAYSCALE : cmyk ? JCS_CMYK : JCS_RGB;
  info.scale_num = 1;
  info.scale_denom = static_cast<unsigned>(ScaleOf(std::min(height, width), options.least_side));
  jpeg_start_decompress(&info);
  image.height = info.output_height;
  image.width = info.output_width;
  image.channels = info.output_components;
  image.pixels.resize(static_cast<size_t>(image.height * image.width * image.channels));
  ReadLines(options, info, image);
  jpeg_finish_decompress(&info);
  return true;
}

// Adobe's files store 255 minus the ink; the others store the ink.
void CmykToRgb(bool left_of_white, Image& image) {
  const int64_t count = image.height * image.width;
  uint8_t* pixels = image.pixels.data();
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t* cmyk = pixels + i * 4;
    const int black = left_of_white ? cmyk[3] : 255 - cmyk[3];
    uint8_t rgb[3];
    for (int c = 0; c < 3; ++c) {
      const int ink = left_of_white ? 255 - cmyk[c] : cmyk[c];
      const int product = ink * black + 128;  // Pillow's way to divide by 255
      rgb[c] = static_cast<uint8_t>(std::clamp(black - (((product >> 8) + product) >> 8), 0, 255));
    }
    std::copy(rgb, rgb + 3, pixels + i * 3);
  }
  image.channels = 3;
  image.pixels.resize(static_cast<size_t>(count * 3));
}

}  // namespace

absl::StatusOr<Image> DecodeJpeg(absl::string_view bytes, const DecodeOptions& options) {
  Errors errors;
  jpeg_decompress_struct info = {};
  info.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = Fail;
  errors.base.emit_message = Emit;
  errors.base.output_message = Ignore;
  absl::Status size;
  Image image;
  const bool whole = Decode(bytes, options, info, errors, size, image);
  const bool adobe = info.saw_Adobe_marker != 0;
  jpeg_destroy_decompress(&info);
  if (whole) {
    if (image.channels == 4) CmykToRgb(adobe, image);
    return image;
  }
  if (!size.ok()) return size;
  const std::string message = errors.message;
  if (absl::StrContains(message, "Premature end")) {
    return absl::InvalidArgumentError("is a JPEG file that is cut: its end is missing");
  }
  return absl::InvalidArgumentError(absl::StrCat("is a damaged JPEG file: ", message));
}

}  // namespace traind
