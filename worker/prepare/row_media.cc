#include "worker/prepare/row_media.h"

#include "worker/prepare/image_media.h"
#include "worker/prepare/volume_media.h"

namespace traind {

absl::StatusOr<std::unique_ptr<RowMedia>> OpenRowMedia(const PrepareSpec& spec, int threads) {
  if (spec.image.has_value()) return OpenImageMedia(spec, threads);
  if (spec.volume.has_value()) return OpenVolumeMedia(spec);
  return std::unique_ptr<RowMedia>();
}

}  // namespace traind
