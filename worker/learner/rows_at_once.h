// How many rows a network predicts at a time.
#pragma once

#include <cstdint>

#include "worker/model/networks/model_spec.h"

namespace traind {

// Enough to fill the device, few enough that what a network makes of their windows (attention: a
// number per pair of time steps), pixels, voxels or tokens takes less than a training step. Rows
// that are asked for in multiples of it are answered as all of them together, bit by bit.
int64_t RowsAtOnce(const ModelShape& shape, bool gpu);

}  // namespace traind
