// Parameters of an encoder's layers, named and started as PyTorch's are.
#pragma once

#include <cstdint>
#include <string>

#include "worker/model/networks/input_columns.h"
#include "worker/model/networks/parameters.h"

namespace traind {

struct NormParameters {
  size_t weight = 0, bias = 0;
};
// <name>.weight, <name>.bias [width].
NormParameters DeclareNorm(const std::string& name, int64_t width, Parameters& parameters);

// Declared in the order of in_proj, out_proj, linear1, linear2, norm1, norm2: side by side.
struct EncoderLayer {
  LinearParameters in_proj, out_proj, linear1, linear2;
  NormParameters norm1, norm2;
};
// As torch.nn.TransformerEncoderLayer starts.
EncoderLayer DeclareEncoderLayer(const std::string& name, int64_t width, int64_t feedforward,
                                 Parameters& parameters);

}  // namespace traind
