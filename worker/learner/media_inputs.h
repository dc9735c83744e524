// Converts media to a model's inputs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "worker/data/media_source.h"
#include "worker/device/cuda_api.h"
#include "worker/model/networks/model.h"

namespace traind {

// The media of a batch on the device; those that it has not are undefined.
struct MediaTensors {
  at::Tensor image;         // [B, C, H, W] or [B, C, D, H, W], channels last in memory
  at::Tensor tokens, ends;  // int32, as in MediaBatch; `ends` stays on the host
  at::Tensor target;
};

// cuda: null on the CPU, where the tensors are views of the batch, which must outlive them
// unchanged. texts: the media are texts, also where the batch has no rows.
MediaTensors TensorsOf(const MediaBatch& media, bool texts, const CudaApi* cuda);

void AttachMedia(const MediaTensors& media, Inputs& inputs);

// For MediaLoader: copies a batch to page-locked memory, from which TensorsOf() copies it to the
// GPU beside the GPU's work. Threads: any. Errors: those of torch.
absl::Status LockMedia(MediaBatch& media);

}  // namespace traind
