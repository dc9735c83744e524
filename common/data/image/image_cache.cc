#include "common/data/image/image_cache.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <string.h>

#include <array>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/image/image.h"

namespace traind {
namespace {

constexpr absl::string_view kMagic = "TRIMAGE1";
constexpr size_t kDigestAt = 64, kHeaderBytes = 128;

absl::Status Damaged(const std::string& path) {
  return absl::DataLossError(absl::StrCat(path, " is not a complete image cache"));
}

absl::string_view Bytes(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ImageCache>> ImageCache::Open(const std::string& path) {
  std::shared_ptr<ImageCache> cache(new ImageCache());
  ASSIGN_OR_RETURN(cache->file_, MappedFile::Open(path, MapUse::kStream));
  const absl::string_view bytes = cache->file_->bytes();
  if (bytes.size() < kHeaderBytes || bytes.substr(0, kMagic.size()) != kMagic) {
    return Damaged(path);
  }
  std::array<int64_t, 4> sizes;
  memcpy(sizes.data(), bytes.data() + kMagic.size(), sizeof sizes);
  const auto [train, test, size, channels] = sizes;
  constexpr int64_t kMostRows = int64_t{1} << 32;
  const bool sound = train >= 0 && test >= 0 && train <= kMostRows && test <= kMostRows &&
                     size > 0 && size <= kMostPixels / size && (channels == 1 || channels == 3);
  if (!sound) return Damaged(path);
  cache->shape_ = {train, test, size, channels};
  const auto pixels = static_cast<int64_t>(bytes.size() - kHeaderBytes);
  if (pixels % cache->shape_.stride() != 0 ||
      pixels / cache->shape_.stride() != cache->shape_.rows()) {
    return Damaged(path);
  }
  cache->pixels_ = reinterpret_cast<const uint8_t*>(bytes.data()) + kHeaderBytes;
  return std::shared_ptr<const ImageCache>(std::move(cache));
}

absl::Status ImageCache::VerifyDigest() const {
  const absl::string_view bytes = file_->bytes();
  if (Sha256Hex(bytes.substr(kHeaderBytes)) == bytes.substr(kDigestAt, 64)) return absl::OkStatus();
  return absl::DataLossError("an image cache has changed since it was written");
}

absl::Status WriteImageCache(const ImageShape& shape, absl::Span<const uint8_t> pixels,
                             const std::string& path) {
  std::string header(kHeaderBytes, '\0');
  memcpy(&header[0], kMagic.data(), kMagic.size());
  const std::array<int64_t, 4> sizes = {shape.train_rows, shape.test_rows, shape.size,
                                        shape.channels};
  memcpy(&header[kMagic.size()], sizes.data(), sizeof sizes);
  const absl::string_view data = Bytes(pixels.data(), pixels.size());
  memcpy(&header[kDigestAt], Sha256Hex(data).data(), 64);
  return WriteFileDurably(path, {absl::string_view(header), data});
}

}  // namespace traind
