// Reads many image files as pixels of one size.
#pragma once

#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace traind {

struct ImageSetOptions {
  std::string root;  // paths are relative to it and must not lead out of it
  int64_t size = 32, channels = 3;
  int threads = 1;
};

struct ImageSet {
  // [paths]: "PATH reason" for each image that could not be read; empty for the others.
  std::vector<std::string> errors;
  // SHA-256, in hex, of all files' bytes in order. Equal digests mean equal pixels.
  std::string content_sha256;
};

// Reads and decodes each file into out, [paths, size, size, channels]; pixels of an unreadable
// image are zeros. Files are read on several threads, which does not change the result. REQUIRES:
// out has room for all images.
ImageSet ReadImages(absl::Span<const std::string> paths, const ImageSetOptions& options,
                    absl::Span<uint8_t> out);

// Computes only the digest: reads the files and decodes none.
std::string DigestImages(absl::Span<const std::string> paths, const ImageSetOptions& options);

}  // namespace traind
