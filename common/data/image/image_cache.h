// Decoded images in a memory-mapped file.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>

#include "common/data/table/mapped_file.h"

namespace traind {

struct ImageShape {
  int64_t train_rows = 0, test_rows = 0;
  int64_t size = 0;  // both sides
  int64_t channels = 0;

  int64_t rows() const { return train_rows + test_rows; }
  int64_t stride() const { return size * size * channels; }  // bytes per image
};

// File format: 8 bytes magic "TRIMAGE1", i64 train_rows, test_rows, size, channels, 24 zero bytes,
// 64 bytes SHA-256 of the pixels in hex, then, from byte 128 on, u8 [rows, size, size, channels]:
// the images of the training rows, then of the test rows.
// Threads: safe to share.
class ImageCache {
 public:
  // NotFound; DataLoss: the file is cut, or is not such a cache.
  static absl::StatusOr<std::shared_ptr<const ImageCache>> Open(const std::string& path);

  const ImageShape& shape() const { return shape_; }
  const uint8_t* pixels() const { return pixels_; }  // [rows, size, size, channels]
  // Reads the whole file. DataLoss: a byte has changed since it was written.
  absl::Status VerifyDigest() const;

 private:
  ImageCache() = default;

  std::unique_ptr<MappedFile> file_;
  ImageShape shape_;
  const uint8_t* pixels_ = nullptr;
};

// Writes the file durably. REQUIRES: pixels.size() == shape.rows() * shape.stride().
absl::Status WriteImageCache(const ImageShape& shape, absl::Span<const uint8_t> pixels,
                             const std::string& path);

}  // namespace traind
