#pragma once

#include <memory>

#include "worker/model/networks/model.h"

namespace traind {

// An encoder over packed tokens: embeddings, pre-norm layers with GELU and disentangled
// relative attention (packed_attention.h) or plain one with learnt absolute positions, the
// tokens' mean; beside it the numeric and categorical columns through a layer of 32; a
// layer of 64 over both, and the outputs. Without padding: what is not attention runs over
// all tokens of the batch at once.
// Parameters: tokens.weight [vocabulary, D], then relative.weight [64, D] or position
// [shape.max_tokens, D], encoder.layers.<k> as torch.nn.TransformerEncoderLayer's,
// columns.<weight, bias>, head.0.<...>, head.2.<...>.
absl::StatusOr<std::unique_ptr<Model>> CreateTextEncoder(const ModelSpec& spec,
                                                         const ModelShape& shape,
                                                         Parameters& parameters);

}  // namespace traind
