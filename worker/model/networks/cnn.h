#pragma once

#include <memory>

#include "worker/model/networks/model.h"

namespace traind {

// Residual network over images (He, Zhang, Ren, Sun 2015; the basic block): a 3x3
// convolution, then stages of blocks of two of them, the first block of each later stage
// with stride 2 and twice the channels; the mean over all pixels and the row's other
// columns go to a fully connected head. Every convolution is followed by a norm over the
// batch; its running statistics answer outside of training.
// Parameters: those of InputColumns; of each convolution NAME.conv.weight [out, in, k, k],
// NAME.norm.weight [out], NAME.norm.bias [out] and the buffers NAME.norm.running_mean,
// NAME.norm.running_var [out], where NAME is stem, stages.<s>.<b>.first, .second and
// .shortcut (where a block changes its input's shape); head.weight [outputs, width],
// head.bias [outputs].
absl::StatusOr<std::unique_ptr<Model>> CreateCnn(const ModelSpec& spec, const ModelShape& shape,
                                                 Parameters& parameters);

}  // namespace traind
