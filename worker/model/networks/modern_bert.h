#pragma once

#include <memory>

#include "common/data/weights/text_config.h"
#include "worker/model/networks/model.h"

namespace traind {

// A ModernBERT (Warner et al. 2024) with the names of Hugging Face's transformers: norms before
// attention and network, gated GELU, tokens that know their places by rotations, and layers in
// which a token sees only its neighbourhood. Columns beside the text join the last layer. REQUIRES:
// config is a ModernBERT's; the shape's texts fit it.
std::unique_ptr<Model> MakeModernBert(const TextConfig& config, double dropout,
                                      const ModelShape& shape, Parameters& parameters);

}  // namespace traind
