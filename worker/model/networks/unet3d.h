#pragma once

#include <memory>

#include "worker/model/networks/model.h"

namespace traind {

// A U-Net over volumes (Çiçek et al. 2016). A block is 3x3x3 convolution, batch norm and ReLU,
// twice. Each level halves the extent and doubles the channels. On the way up, each level's own
// output is concatenated with the upsampled output of the level below. Extents are
// multiples of 2^(levels - 1).
// Parameters, by PyTorch's names: down.<k>.<0|3>.weight [out, in, 3, 3, 3],
// down.<k>.<1|4>.{weight,bias,running_mean,running_var}, up.<k>.{weight,bias} [in, out, 2, 2,
// 2], dec.<k>.* like down, out.{weight,bias}. Forward returns [B, outputs, D, H, W].
std::unique_ptr<Model> CreateUnet3d(const ModelSpec& spec, const ModelShape& shape,
                                    Parameters& parameters);

}  // namespace traind
