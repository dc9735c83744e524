#include "worker/prepare/row_media.h"

#include "worker/prepare/image_media.h"

namespace traind {

absl::StatusOr<std::unique_ptr<RowMedia>> OpenRowMedia(const PrepareSpec& spec, int threads) {
  if (spec.image.has_value()) return OpenImageMedia(spec, threads);
  return std::unique_ptr<RowMedia>();
}

}  // namespace traind
