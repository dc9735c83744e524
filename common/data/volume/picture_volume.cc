#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "common/base/data_roots.h"
#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/image/decode.h"
#include "common/data/volume/volume_reader.h"

namespace traind {
namespace {

class PictureVolume final : public VolumeReader {
 public:
  PictureVolume(std::string path, Image image)
      : VolumeReader(std::move(path)), image_(std::move(image)) {
    shape_ = {1, image_.height, image_.width, image_.channels};
    type_ = VoxelType::kUint8;
    picture_ = true;
  }

 protected:
  absl::Status Decode(int64_t, absl::Span<float> out) override {
    std::copy(image_.pixels.begin(), image_.pixels.end(), out.begin());
    return absl::OkStatus();
  }

 private:
  const Image image_;
};

absl::StatusOr<std::string> Bytes(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  const absl::Cleanup closer = [fd] { close(fd); };
  RETURN_IF_ERROR(CheckUserFile(fd, path));
  return ReadFile(absl::StrCat("/proc/self/fd/", fd));
}

}  // namespace

absl::StatusOr<std::unique_ptr<VolumeReader>> OpenPictureVolume(const std::string& path,
                                                                VolumeUse use) {
  ASSIGN_OR_RETURN(const std::string bytes, Bytes(path));
  absl::StatusOr<Image> image = FormatOf(bytes) == ImageFormat::kJpeg
                                    ? DecodeJpeg(bytes, DecodeOptions())
                                : use == VolumeUse::kMask ? DecodePngLabels(bytes)
                                                          : DecodePng(bytes);
  if (image.ok()) return std::make_unique<PictureVolume>(path, *std::move(image));
  if (!absl::IsInvalidArgument(image.status())) return image.status();
  return absl::InvalidArgumentError(absl::StrCat(path, " ", image.status().message()));
}

}  // namespace traind
