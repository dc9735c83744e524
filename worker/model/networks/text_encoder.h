#pragma once

#include <memory>

#include "worker/model/networks/model.h"

namespace traind {

// An encoder over packed tokens: embeddings, pre-norm layers with GELU, and the mean over each
// sample's tokens. Attention is disentangled (packed_attention.h), or plain with learnt
// absolute positions. The numeric and categorical columns go through a layer of 32; a layer of
// 64 over both parts and an output layer follow. There is no padding: everything but attention
// runs over all tokens of the batch at once.
// Parameters: tokens.weight [vocabulary, D], then relative.weight [64, D] or position
// [shape.max_tokens, D], encoder.layers.<k> with the names of torch.nn.TransformerEncoderLayer,
// columns.<weight, bias>, head.0.<...>, head.2.<...>.
absl::StatusOr<std::unique_ptr<Model>> CreateTextEncoder(const ModelSpec& spec,
                                                         const ModelShape& shape,
                                                         Parameters& parameters);

}  // namespace traind
