// Decodes any bytes as an image file: the result has pixels of the stated size, or is an error.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "common/data/image/decode.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto image = traind::DecodeImage(bytes, {3, 16});
  if (!image.ok()) return 0;
  const auto small = traind::CropAndResize(*image, 16);
  const auto pixels = static_cast<size_t>(image->height * image->width * image->channels);
  if (image->pixels.size() != pixels || small.pixels.size() != 16 * 16 * 3) {
    std::fprintf(stderr, "pixels are not those of the size\n");
    std::abort();
  }
  return 0;
}
