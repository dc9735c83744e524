#pragma once

#include <memory>

#include "worker/model/model.h"

namespace traind {

// Fully connected layers with ReLU and dropout over the numeric columns and a
// learnt embedding of each categorical one. Parameters: embeddings.<i>.weight
// [cardinality, width], layers.<i>.weight [out, in], layers.<i>.bias [out].
std::unique_ptr<Model> CreateMlp(const ModelSpec& spec, const ModelShape& shape,
                                 Parameters& parameters);

// Width of the embedding of that many codes.
int64_t EmbeddingWidth(int64_t cardinality);

}  // namespace traind
