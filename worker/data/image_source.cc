#include "worker/data/image_source.h"

#include <utility>

#include "worker/data/random.h"

namespace traind {

ImageSource::ImageSource(std::shared_ptr<const uint8_t> pixels, int64_t size, int64_t channels,
                         const PixelScale& scale, const Augmentation& augmentation)
    : pixels_(std::move(pixels)),
      size_(size),
      channels_(channels),
      writer_(size, channels, scale),
      augmentation_(augmentation) {}

absl::Status ImageSource::Load(const MediaRequest& request, MediaBatch& out) const {
  const int64_t stride = size_ * size_ * channels_;
  out.shape = {static_cast<int64_t>(request.rows.size()), size_, size_, channels_};
  out.values.resize(request.rows.size() * static_cast<size_t>(stride));
  float* to = out.values.data();
  for (const int32_t row : request.rows) {
    const uint8_t* from = pixels_.get() + row * stride;
    if (request.training && augmentation_.any()) {
      const auto number = static_cast<uint64_t>(row);
      writer_.WriteChanged(from, augmentation_, StreamSeed(request.seed, Stream::kMedia, number),
                           to);
    } else {
      writer_.Write(from, to);
    }
    to += stride;
  }
  return absl::OkStatus();
}

}  // namespace traind
