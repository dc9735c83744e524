// The parameters of encoder layers, with PyTorch's names and initial values.
#pragma once

#include <cstdint>
#include <string>

#include "worker/model/networks/input_columns.h"
#include "worker/model/networks/parameters.h"

namespace traind {

struct NormParameters {
  size_t weight = 0, bias = 0;
};
// Declares <name>.weight and <name>.bias [width].
NormParameters DeclareNorm(const std::string& name, int64_t width, Parameters& parameters);

// Declared side by side in the order in_proj, out_proj, linear1, linear2, norm1, norm2.
struct EncoderLayer {
  LinearParameters in_proj, out_proj, linear1, linear2;
  NormParameters norm1, norm2;
};
// Initial values are those of torch.nn.TransformerEncoderLayer.
EncoderLayer DeclareEncoderLayer(const std::string& name, int64_t width, int64_t feedforward,
                                 Parameters& parameters);

}  // namespace traind
