#pragma once

#include <memory>

#include "worker/model/networks/model.h"

namespace traind {

// Fully connected layers with ReLU and dropout. The steps of a window stand side by side.
// Parameters: those of InputColumns, layers.<i>.weight [out, in], layers.<i>.bias [out].
absl::StatusOr<std::unique_ptr<Model>> CreateMlp(const ModelSpec& spec, const ModelShape& shape,
                                                 Parameters& parameters);

}  // namespace traind
