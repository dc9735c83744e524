#include "common/data/volume/volume_reader.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <absl/strings/strip.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <utility>

#include "common/base/data_roots.h"
#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/image/decode.h"
#include "common/data/volume/file_pair.h"

namespace traind {
namespace {

absl::StatusOr<std::string> FirstBytes(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  const absl::Cleanup closer = [fd] { close(fd); };
  RETURN_IF_ERROR(CheckUserFile(fd, path));
  std::string bytes(8, '\0');
  const ssize_t n = read(fd, bytes.data(), bytes.size());
  if (n < 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", path));
  bytes.resize(static_cast<size_t>(n));
  return bytes;
}

}  // namespace

absl::Status VolumeReader::Wrong(absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat(path_, ": ", what));
}

absl::Status VolumeReader::ReadSlice(int64_t z, absl::Span<float> out) {
  RETURN_IF_ERROR(Decode(z, out));
  for (size_t i = 0; i < out.size(); ++i) {
    if (std::isfinite(out[i])) continue;
    const int64_t pixel = static_cast<int64_t>(i) / shape_.channels;
    return Wrong(absl::StrCat("the voxel at z ", z, ", y ", pixel / shape_.width, ", x ",
                              pixel % shape_.width, " is ",
                              std::isnan(out[i]) ? "not a number" : "infinite"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<VolumeReader>> OpenVolume(const std::string& path, VolumeUse use) {
  const bool voxels = absl::EndsWith(path, ".img") || absl::EndsWith(path, ".img.gz");
  if (const std::string header = voxels ? OtherOfPair(path) : ""; !header.empty()) {
    return OpenVolume(header, use);
  }
  ASSIGN_OR_RETURN(const std::string first, FirstBytes(path));
  const auto begins = [&first](absl::string_view magic) {
    return absl::string_view(first).substr(0, magic.size()) == magic;
  };
  absl::StatusOr<std::unique_ptr<VolumeReader>> reader = [&] {
    if (begins("\x93NUMPY")) return OpenNpyVolume(path, /*archive=*/false);
    if (begins("PK")) return OpenNpyVolume(path, /*archive=*/true);
    if (begins("\x1f\x8b") || IsNifti(first)) return OpenNiftiVolume(path);
    if (FormatOf(first) != ImageFormat::kUnknown) return OpenPictureVolume(path, use);
    // TIFF has version 42, BigTIFF 43, in either byte order.
    for (const char version : {'\x2a', '\x2b'}) {
      const char little[] = {'I', 'I', version, '\0'}, big[] = {'M', 'M', '\0', version};
      if (begins({little, 4}) || begins({big, 4})) return OpenTiffVolume(path);
    }
    return absl::StatusOr<std::unique_ptr<VolumeReader>>(absl::InvalidArgumentError(
        absl::StrCat(path, ": neither NPY, NPZ, TIFF, NIfTI, PNG nor JPEG")));
  }();
  if (!reader.ok()) return reader;
  const VolumeShape& shape = (*reader)->shape();
  for (const int64_t extent : {shape.depth, shape.height, shape.width, shape.channels}) {
    if (extent < 1 || extent > kMostExtent) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": a volume of ", ToString(shape), " voxels"));
    }
  }
  if (shape.slice() > kMostSliceValues) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": a slice of ", shape.slice(),
                                                   " values; at most ", kMostSliceValues,
                                                   " are allowed"));
  }
  return reader;
}

}  // namespace traind
