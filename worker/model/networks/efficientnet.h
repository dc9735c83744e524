#pragma once

#include <memory>

#include "common/data/weights/image_architectures.h"
#include "worker/model/networks/model.h"

namespace traind {

// EfficientNet-B0 (Tan, Le 2019) as timm makes it: blocks that widen their input by a 1x1
// convolution, see each channel by itself, weigh the channels by their means over all pixels
// (squeeze and excitation), and narrow them again; a batch norm follows every convolution, and SiLU
// all but the last of a block. Parameters: conv_stem, bn1, blocks.0.0.{conv_dw, bn1,
// se.conv_reduce, se.conv_expand, conv_pw, bn2}, blocks.<s>.<b>.{conv_pw, bn1, conv_dw, bn2,
// se.conv_reduce, se.conv_expand, conv_pwl, bn3}, conv_head, bn2, classifier.
absl::StatusOr<std::unique_ptr<Model>> CreateEfficientnet(const ModelSpec& spec,
                                                          const ImageArchitecture& architecture,
                                                          const ModelShape& shape,
                                                          Parameters& parameters);

}  // namespace traind
