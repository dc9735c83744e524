#include "worker/learner/media_inputs.h"

#include <ATen/ops/from_blob.h>

#include "worker/device/upload.h"

namespace traind {
namespace {

// The values are only read, but from_blob has no overload for const data.
template <class T>
at::Tensor View(const std::vector<T>& values, at::IntArrayRef shape, c10::Device device) {
  return Upload(at::from_blob(const_cast<T*>(values.data()), shape,
                              at::TensorOptions().dtype(c10::CppTypeToScalarType<T>::value)),
                device);
}

}  // namespace

at::Tensor TensorOf(const std::vector<float>& values, const std::vector<int64_t>& shape,
                    c10::Device device) {
  return View(values, shape, device);
}

void AttachMedia(const MediaBatch& media, bool texts, c10::Device device, Inputs& inputs) {
  if (!media.shape.empty()) {
    // Channels come second by index, but last in memory.
    inputs.image = View(media.values, media.shape, device).movedim(-1, 1);
  }
  if (texts) {
    inputs.tokens = View(media.tokens, {static_cast<int64_t>(media.tokens.size())}, device);
    inputs.ends = View(media.ends, {static_cast<int64_t>(media.ends.size())}, c10::kCPU);
  }
}

}  // namespace traind
