#pragma once

#include <memory>

#include "worker/model/networks/model.h"

namespace traind {

// Fully connected layers with ReLU and dropout. The steps of a window stand side by side.
// Parameters: those of InputColumns and, with embedded numbers, of PeriodicEmbedding;
// layers.<i>.weight [out, in], layers.<i>.bias [out].
// Several members (TabM-mini: Gorishniy, Kotelnikov, Babenko 2024) share the hidden layers. Each
// multiplies the inputs by factors [members, in] of its own and has its own head: heads.weight
// [members, in, out], heads.bias [members, 1, out].
absl::StatusOr<std::unique_ptr<Model>> CreateMlp(const ModelSpec& spec, const ModelShape& shape,
                                                 Parameters& parameters);

}  // namespace traind
