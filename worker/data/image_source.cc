#include "worker/data/image_source.h"

#include <utility>

#include "worker/data/random.h"

namespace traind {

ImageSource::ImageSource(std::shared_ptr<const ImageCache> cache, int64_t first,
                         const PixelScale& scale, const Augmentation& augmentation)
    : cache_(std::move(cache)),
      first_(first),
      writer_(cache_->shape().size, cache_->shape().channels, scale),
      augmentation_(augmentation) {}

absl::Status ImageSource::Load(const MediaRequest& request, MediaBatch& out) const {
  const ImageShape& shape = cache_->shape();
  out.shape = {static_cast<int64_t>(request.rows.size()), shape.size, shape.size, shape.channels};
  out.values.resize(request.rows.size() * static_cast<size_t>(shape.stride()));
  float* to = out.values.data();
  for (const int32_t row : request.rows) {
    const uint8_t* from = cache_->pixels() + (first_ + row) * shape.stride();
    if (request.training && augmentation_.any()) {
      const auto number = static_cast<uint64_t>(row);
      writer_.WriteChanged(from, augmentation_, StreamSeed(request.seed, Stream::kMedia, number),
                           to);
    } else {
      writer_.Write(from, to);
    }
    to += shape.stride();
  }
  return absl::OkStatus();
}

}  // namespace traind
