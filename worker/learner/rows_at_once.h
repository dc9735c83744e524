// The number of rows that a network predicts at a time.
#pragma once

#include <cstdint>

#include "worker/model/networks/model_spec.h"

namespace traind {

// Enough rows to fill the device, but few enough that the activations of their windows
// (attention has a number per pair of time steps), pixels, voxels or tokens take less memory
// than a training step. Predicting rows in multiples of this number gives, bit by bit, the same
// answers as predicting all at once.
int64_t RowsAtOnce(const ModelSpec& model, const ModelShape& shape, bool gpu);

}  // namespace traind
