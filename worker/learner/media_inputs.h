// Converts media to a model's inputs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "worker/data/media_source.h"
#include "worker/model/networks/model.h"

namespace traind {

// The values as a tensor on the device. On the CPU the tensor is a view of `values`, which must
// outlive it unchanged.
at::Tensor TensorOf(const std::vector<float>& values, const std::vector<int64_t>& shape,
                    c10::Device device);

// Sets the inputs' media from the batch; `texts`: the media are texts, also where the batch has no
// rows. Lifetime: as TensorOf.
void AttachMedia(const MediaBatch& media, bool texts, c10::Device device, Inputs& inputs);

}  // namespace traind
