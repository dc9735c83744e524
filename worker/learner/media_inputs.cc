#include "worker/learner/media_inputs.h"

#include <ATen/ops/from_blob.h>

#include <memory>

#include "worker/device/guard.h"
#include "worker/device/upload.h"

namespace traind {
namespace {

struct HostTensors {
  at::Tensor values, tokens, ends, target;
};

// The values are only read, but from_blob has no overload for const data.
template <class T>
at::Tensor View(const std::vector<T>& values, at::IntArrayRef shape) {
  return at::from_blob(const_cast<T*>(values.data()), shape,
                       at::TensorOptions().dtype(c10::CppTypeToScalarType<T>::value));
}

HostTensors ViewsOf(const MediaBatch& media) {
  HostTensors views;
  if (!media.shape.empty()) views.values = View(media.values, media.shape);
  if (!media.target_shape.empty()) views.target = View(media.target, media.target_shape);
  views.tokens = View(media.tokens, {static_cast<int64_t>(media.tokens.size())});
  views.ends = View(media.ends, {static_cast<int64_t>(media.ends.size())});
  return views;
}

}  // namespace

absl::Status LockMedia(MediaBatch& media) {
  return Guarded([&] {
    HostTensors all = ViewsOf(media);
    for (at::Tensor* const part : {&all.values, &all.tokens, &all.target}) {
      if (part->defined() && part->numel() > 0) *part = part->pin_memory();
    }
    media.staged = std::make_shared<const HostTensors>(std::move(all));
    return absl::OkStatus();
  });
}

MediaTensors TensorsOf(const MediaBatch& media, bool texts, const CudaApi* cuda) {
  const auto* const locked = static_cast<const HostTensors*>(media.staged.get());
  const HostTensors host = locked == nullptr ? ViewsOf(media) : *locked;
  const auto on_device = [&](const at::Tensor& part) {
    if (cuda == nullptr || !part.defined()) return part;
    if (locked != nullptr && part.numel() > 0) return cuda->CopyAhead(part);
    return Upload(part, c10::Device(c10::kCUDA, 0));
  };
  MediaTensors tensors;
  // Channels come second by index, but last in memory.
  if (host.values.defined()) tensors.image = on_device(host.values).movedim(-1, 1);
  tensors.target = on_device(host.target);
  if (texts) {
    tensors.tokens = on_device(host.tokens);
    tensors.ends = host.ends;
  }
  return tensors;
}

void AttachMedia(const MediaTensors& media, Inputs& inputs) {
  if (media.image.defined()) inputs.image = media.image;
  if (media.tokens.defined()) inputs.tokens = media.tokens;
  if (media.ends.defined()) inputs.ends = media.ends;
}

}  // namespace traind
