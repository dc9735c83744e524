#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <png.h>
#include <setjmp.h>
#include <string.h>

#include <string>
#include <vector>

#include "common/data/image/decode.h"

namespace traind {
namespace {

constexpr char kCut[] = "cut";

// The state that libpng's callbacks see.
struct Reader {
  absl::string_view rest;
  bool labels = false;  // pixels keep the file's numbers
  char message[128] = "";
};

[[noreturn]] void Fail(png_structp png, png_const_charp message) {
  auto* reader = static_cast<Reader*>(png_get_error_ptr(png));
  strncpy(reader->message, message, sizeof reader->message - 1);
  png_longjmp(png, 1);
}

void Ignore(png_structp, png_const_charp) {}

void Read(png_structp png, png_bytep to, size_t size) {
  auto* reader = static_cast<Reader*>(png_get_io_ptr(png));
  if (reader->rest.size() < size) png_error(png, kCut);
  memcpy(to, reader->rest.data(), size);
  reader->rest.remove_prefix(size);
}

// Objects with destructors live in the caller, because errors longjmp over this frame. Returns
// false on failure: reader.message says why, or size if the size is wrong.
bool Decode(png_structp png, png_infop info, absl::Status& size, std::vector<png_bytep>& rows,
            Image& image) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_read_info(png, info);
  image.height = png_get_image_height(png, info);
  image.width = png_get_image_width(png, info);
  size = CheckImageSize(image.height, image.width);
  if (!size.ok()) return false;
  if (static_cast<Reader*>(png_get_io_ptr(png))->labels) {
    if (png_get_bit_depth(png, info) > 8) png_error(png, "16 bits a pixel, where labels have 8");
    png_set_packing(png);
  } else {
    png_set_palette_to_rgb(png);
    if (png_get_color_type(png, info) != PNG_COLOR_TYPE_PALETTE) {
      png_set_expand_gray_1_2_4_to_8(png);
    }
    png_set_strip_16(png);
  }
  png_set_strip_alpha(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  image.channels = png_get_channels(png, info);
  const size_t stride = png_get_rowbytes(png, info);
  image.pixels.resize(stride * static_cast<size_t>(image.height));
  for (int64_t row = 0; row < image.height; ++row) {
    rows.push_back(image.pixels.data() + static_cast<size_t>(row) * stride);
  }
  png_read_image(png, rows.data());
  png_read_end(png, nullptr);
  return true;
}

absl::StatusOr<Image> DecodeAs(bool labels, absl::string_view bytes) {
  Reader reader;
  reader.rest = bytes;
  reader.labels = labels;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, Fail, Ignore);
  if (png == nullptr) return absl::ResourceExhaustedError("libpng has no memory");
  png_infop info = png_create_info_struct(png);
  if (info == nullptr) {
    png_destroy_read_struct(&png, nullptr, nullptr);
    return absl::ResourceExhaustedError("libpng has no memory");
  }
  png_set_read_fn(png, &reader, Read);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // CheckImageSize limits the size
  absl::Status size;
  std::vector<png_bytep> rows;
  Image image;
  const bool whole = Decode(png, info, size, rows, image);
  png_destroy_read_struct(&png, &info, nullptr);
  if (whole) return image;
  if (!size.ok()) return size;
  if (strcmp(reader.message, kCut) == 0) {
    return absl::InvalidArgumentError("is a PNG file that is cut: its end is missing");
  }
  return absl::InvalidArgumentError(absl::StrCat("is a damaged PNG file: ", reader.message));
}

}  // namespace

absl::StatusOr<Image> DecodePng(absl::string_view bytes) {
  return DecodeAs(/*labels=*/false, bytes);
}

absl::StatusOr<Image> DecodePngLabels(absl::string_view bytes) {
  return DecodeAs(/*labels=*/true, bytes);
}

}  // namespace traind
