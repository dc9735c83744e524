// Media as a model's inputs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "worker/data/media_source.h"
#include "worker/model/networks/model.h"

namespace traind {

// The values as a tensor on the device. On the CPU it looks into `values`, which are to
// live and stay as they are for as long as it.
at::Tensor TensorOf(const std::vector<float>& values, const std::vector<int64_t>& shape,
                    c10::Device device);

// Gives the inputs what the batch has. Lifetime: as TensorOf.
void AttachMedia(const MediaBatch& media, c10::Device device, Inputs& inputs);

}  // namespace traind
