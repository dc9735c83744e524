#pragma once

#include <memory>

#include "worker/model/networks/model.h"

namespace traind {

// BERT (Devlin et al. 2019), RoBERTa, DistilBERT or DeBERTa v3 (He et al. 2021) over packed tokens,
// with the names and the answers of the ...ForSequenceClassification of Hugging Face's
// transformers: embeddings of tokens, positions and the first token type (DeBERTa: of tokens alone,
// with disentangled attention), post-norm layers, and a head on each text's first token. A
// ModernBERT is made by modern_bert.h. The network's sizes are in spec.pretrained->config. Numeric
// and categorical columns go through a layer of 32 (columns.<weight, bias>) and join the input of
// the output layer. Errors: InvalidArgument: there is no config, or the tokenizer or
// data.text.max_tokens do not fit it.
absl::StatusOr<std::unique_ptr<Model>> CreateBertEncoder(const ModelSpec& spec,
                                                         const ModelShape& shape,
                                                         Parameters& parameters);

}  // namespace traind
