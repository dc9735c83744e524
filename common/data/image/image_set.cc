#include "common/data/image/image_set.h"

#include <absl/cleanup/cleanup.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/base/data_roots.h"
#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/image/decode.h"
#include "common/data/image/image.h"
#include "common/data/image/on_threads.h"

namespace traind {
namespace {

// Returns the file's bytes. Messages are meant to follow the file's name.
absl::StatusOr<std::string> ReadBelow(const std::string& root, const std::string& path) {
  if (path.empty()) return absl::InvalidArgumentError("is missing");
  const int fd =
      open(absl::StrCat(root, "/", path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0 && errno == ENOENT) return absl::NotFoundError("cannot be found");
  if (fd < 0) return absl::NotFoundError("cannot be read");
  const absl::Cleanup closer = [fd] { close(fd); };
  ASSIGN_OR_RETURN(const std::string real, RealPathOf(fd));
  if (absl::StartsWith(path, "/") || !absl::StartsWith(real, absl::StrCat(root, "/"))) {
    return absl::PermissionDeniedError(absl::StrCat("does not lie below ", root));
  }
  // The very file that was checked, whatever its path leads to by now.
  absl::StatusOr<std::string> bytes = ReadFile(absl::StrCat("/proc/self/fd/", fd));
  if (!bytes.ok()) return absl::NotFoundError("cannot be read");
  return bytes;
}

absl::Status Decode(absl::string_view bytes, const ImageSetOptions& options, uint8_t* out) {
  ASSIGN_OR_RETURN(const Image image, DecodeImage(bytes, {options.channels, options.size, true}));
  const Image square = CropAndResize(image, options.size);
  std::copy(square.pixels.begin(), square.pixels.end(), out);
  return absl::OkStatus();
}

// out: nullptr means that nothing is decoded.
ImageSet Read(absl::Span<const std::string> paths, const ImageSetOptions& options, uint8_t* out) {
  const absl::StatusOr<std::string> root = RealUserFolder(options.root);
  const int64_t stride = options.size * options.size * options.channels;
  ImageSet set;
  set.errors.resize(paths.size());
  std::vector<std::string> digests(paths.size());
  ForEachOnThreads(static_cast<int64_t>(paths.size()), options.threads, [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    absl::Status status;
    const absl::StatusOr<std::string> bytes = root.ok() ? ReadBelow(*root, paths[at]) : root;
    if (bytes.ok()) {
      digests[at] = Sha256Hex(*bytes);
      if (out != nullptr) status = Decode(*bytes, options, out + i * stride);
    } else {
      status = bytes.status();
    }
    if (status.ok() || out == nullptr) return;
    std::fill_n(out + i * stride, stride, uint8_t{0});
    set.errors[at] = absl::StrCat(paths[at], " ", status.message());
  });
  std::string all;
  for (const std::string& digest : digests) absl::StrAppend(&all, digest, "\n");
  set.content_sha256 = Sha256Hex(all);
  return set;
}

}  // namespace

ImageSet ReadImages(absl::Span<const std::string> paths, const ImageSetOptions& options,
                    absl::Span<uint8_t> out) {
  return Read(paths, options, out.data());
}

std::string DigestImages(absl::Span<const std::string> paths, const ImageSetOptions& options) {
  return Read(paths, options, nullptr).content_sha256;
}

}  // namespace traind
