#pragma once

#include <memory>

#include "worker/model/networks/model.h"

namespace traind {

// A residual network over images (He, Zhang, Ren, Sun 2015; basic blocks): a 3x3 convolution,
// then stages of blocks with two 3x3 convolutions each. The first block of each later stage has
// stride 2 and twice the channels. The mean over all pixels, beside the row's other columns,
// goes to a fully connected head. A batch norm follows every convolution; outside of training
// it uses its running statistics.
// Parameters: those of InputColumns; for each convolution NAME.conv.weight [out, in, k, k],
// NAME.norm.weight [out], NAME.norm.bias [out] and the buffers NAME.norm.running_mean,
// NAME.norm.running_var [out], where NAME is stem, stages.<s>.<b>.first, .second and
// .shortcut (where a block changes its input's shape); head.weight [outputs, width],
// head.bias [outputs].
// With an architecture it is that ResNet, with torchvision's names and initial values: conv1 and
// bn1 (7x7, stride 2), a maximum over 3x3 pixels with stride 2, layer<s>.<b>.conv<k> and .bn<k>,
// .downsample.0 and .1 where a block changes its input's shape, and fc. In bottlenecks the 3x3
// convolution has the stride.
absl::StatusOr<std::unique_ptr<Model>> CreateCnn(const ModelSpec& spec, const ModelShape& shape,
                                                 Parameters& parameters);

}  // namespace traind
