#pragma once

#include <memory>

#include "worker/model/networks/model.h"

namespace traind {

// Stacked LSTM layers (Hochreiter, Schmidhuber 1997; gates i, f, g, o) with dropout between
// them, and a fully connected head on the last time step. A plain row is a sequence of one
// step.
// Parameters: those of InputColumns; for layer k, with H = spec.lstm.hidden,
// lstm.weight_ih_l<k> [4H, in], lstm.weight_hh_l<k> [4H, H], lstm.bias_ih_l<k> [4H],
// lstm.bias_hh_l<k> [4H]; head.weight [outputs, H], head.bias [outputs].
absl::StatusOr<std::unique_ptr<Model>> CreateLstm(const ModelSpec& spec, const ModelShape& shape,
                                                  Parameters& parameters);

}  // namespace traind
