#include "common/data/image/encode.h"

#include <absl/status/status.h>
#include <png.h>

namespace traind {

absl::StatusOr<std::string> EncodePng(absl::Span<const uint8_t> pixels, int64_t height,
                                      int64_t width) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_GRAY;
  image.flags = PNG_IMAGE_FLAG_FAST;  // without filters, which seldom shrink masks
  std::string bytes(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t size = bytes.size();
  const bool done =
      png_image_write_to_memory(&image, bytes.data(), &size, /*convert_to_8_bit=*/0, pixels.data(),
                                /*row_stride=*/0, /*colormap=*/nullptr) != 0;
  if (!done) return absl::ResourceExhaustedError(image.message);
  bytes.resize(size);
  return bytes;
}

}  // namespace traind
