// The parameters of encoder layers, with PyTorch's names and initial values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/model/networks/input_columns.h"
#include "worker/model/networks/parameters.h"

namespace traind {

inline constexpr Initial kZeros{Initial::Kind::kConstant, 0, -1};
inline constexpr Initial kOnes{Initial::Kind::kConstant, 1, -1};
// As the networks of transformers and timm start.
inline constexpr Initial kSmallNormal{Initial::Kind::kNormal, 0.02, -1};
// Declares <name>.weight of this shape, whose first number counts the outputs, as kSmallNormal, and
// <name>.bias [outputs] as kZeros.
LinearParameters DeclareSmall(const std::string& name, std::vector<int64_t> shape,
                              Parameters& parameters);

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
