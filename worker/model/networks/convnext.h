#pragma once

#include <memory>

#include "common/data/weights/image_architectures.h"
#include "worker/model/networks/model.h"

namespace traind {

// A ConvNeXt (Liu and others 2022) as timm makes it: a 4x4 convolution with stride 4, then stages
// of blocks, each a 7x7 convolution of every channel by itself, a norm over channels, and two
// layers with GELU between them. Before each later stage a norm and a 2x2 convolution with
// stride 2. The mean over all pixels is normed and, beside the row's other columns, goes to the
// head. Parameters: stem.{0, 1}, stages.<s>.downsample.{0, 1} (s > 0),
// stages.<s>.blocks.<b>.{conv_dw, norm, mlp.fc1, mlp.fc2, gamma}, head.norm, head.fc.
absl::StatusOr<std::unique_ptr<Model>> CreateConvnext(const ModelSpec& spec,
                                                      const ImageArchitecture& architecture,
                                                      const ModelShape& shape,
                                                      Parameters& parameters);

}  // namespace traind
