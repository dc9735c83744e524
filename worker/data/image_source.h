// Images of a table's rows out of the cache.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "common/image/image_cache.h"
#include "worker/data/image_pixels.h"
#include "worker/data/media_source.h"

namespace traind {

// Batches [B, H, W, C] of one split's rows, as the scale makes numbers of bytes; training
// images are changed as the augmentation says.
class ImageSource final : public MediaSource {
 public:
  // first: the cache's image of row 0.
  ImageSource(std::shared_ptr<const ImageCache> cache, int64_t first, const PixelScale& scale,
              const Augmentation& augmentation);

  absl::Status Load(const MediaRequest& request, MediaBatch& out) const override;

 private:
  const std::shared_ptr<const ImageCache> cache_;
  const int64_t first_;
  const PixelWriter writer_;
  const Augmentation augmentation_;
};

}  // namespace traind
