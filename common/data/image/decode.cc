#include "common/data/image/decode.h"

#include <absl/status/status.h>
#include <absl/strings/match.h>

#include <utility>

#include "common/base/status_macros.h"

namespace traind {

ImageFormat FormatOf(absl::string_view bytes) {
  if (absl::StartsWith(bytes, "\xff\xd8\xff")) return ImageFormat::kJpeg;
  if (absl::StartsWith(bytes, "\x89PNG\r\n\x1a\n")) return ImageFormat::kPng;
  return ImageFormat::kUnknown;
}

absl::StatusOr<Image> DecodeImage(absl::string_view bytes, const DecodeOptions& options) {
  switch (FormatOf(bytes)) {
    case ImageFormat::kJpeg: {
      ASSIGN_OR_RETURN(Image image, DecodeJpeg(bytes, options));
      return WithChannels(std::move(image), options.channels);
    }
    case ImageFormat::kPng: {
      ASSIGN_OR_RETURN(Image image, DecodePng(bytes));
      return WithChannels(std::move(image), options.channels);
    }
    case ImageFormat::kUnknown:
      break;
  }
  return absl::InvalidArgumentError(bytes.empty() ? "is empty"
                                                  : "is neither a JPEG nor a PNG file");
}

}  // namespace traind
