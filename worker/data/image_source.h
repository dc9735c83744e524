// A media source of decoded images.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "worker/data/image_pixels.h"
#include "worker/data/media_source.h"

namespace traind {

// Loads batches [B, H, W, C] of normalised images. Images for training are augmented.
// Threads: safe. Ownership: keeps the pixels.
class ImageSource final : public MediaSource {
 public:
  // pixels: u8 [rows, size, size, channels], from row 0 on.
  ImageSource(std::shared_ptr<const uint8_t> pixels, int64_t size, int64_t channels,
              const PixelScale& scale, const Augmentation& augmentation);

  absl::Status Load(const MediaRequest& request, MediaBatch& out) const override;

 private:
  const std::shared_ptr<const uint8_t> pixels_;
  const int64_t size_, channels_;
  const PixelWriter writer_;
  const Augmentation augmentation_;
};

}  // namespace traind
