#include "worker/inference/row_images.h"

#include <absl/status/statusor.h>
#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "common/base/status_macros.h"
#include "common/data/image/decode.h"
#include "common/data/image/image.h"

namespace traind {
namespace {

absl::StatusOr<Image> Decode(const ImageFields& fields, absl::string_view text) {
  if (absl::StartsWith(text, "data:"))
    text.remove_prefix(std::min(text.find(',') + 1, text.size()));
  std::string bytes;
  if (text.empty() || !absl::Base64Unescape(text, &bytes)) {
    return absl::InvalidArgumentError(
        "is not an image in base64; send the bytes of a JPEG or PNG file, not its path");
  }
  ASSIGN_OR_RETURN(const Image image, DecodeImage(bytes, {fields.channels, fields.size, true}));
  return CropAndResize(image, fields.size);
}

}  // namespace

absl::Status AddRowImages(const ImageFields& fields, const TextRows& images,
                          std::vector<uint8_t>& pixels) {
  const size_t before = pixels.size();
  for (size_t row = 0; row < images.ends.size(); ++row) {
    const absl::StatusOr<Image> image = Decode(fields, images[row]);
    if (!image.ok()) {
      pixels.resize(before);
      return absl::InvalidArgumentError(absl::StrCat(
          "rows: row ", row + 1, ", column '", fields.column, "': ", image.status().message()));
    }
    pixels.insert(pixels.end(), image->pixels.begin(), image->pixels.end());
  }
  return absl::OkStatus();
}

}  // namespace traind
