// Many image files as pixels of one size.
#pragma once

#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace traind {

struct ImageSetOptions {
  std::string root;  // paths are relative to it and lead to nothing outside of it
  int64_t size = 32, channels = 3;
  int threads = 1;
};

struct ImageSet {
  // [paths]: why an image could not be read, "PATH what"; empty where it could be.
  std::vector<std::string> errors;
  // Of all files' bytes, in their order: SHA-256, in hex. Equal ones have equal pixels.
  std::string content_sha256;
};

// Reads and decodes each file into out, [paths, size, size, channels]; zeros where it
// could not be. Files are read on several threads; the result does not depend on them.
// REQUIRES: out has room for all.
ImageSet ReadImages(absl::Span<const std::string> paths, const ImageSetOptions& options,
                    absl::Span<uint8_t> out);

// The digest alone: reads the files and decodes none.
std::string DigestImages(absl::Span<const std::string> paths, const ImageSetOptions& options);

}  // namespace traind
