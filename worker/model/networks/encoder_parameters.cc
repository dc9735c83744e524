#include "worker/model/networks/encoder_parameters.h"

#include <cmath>

namespace traind {
namespace {

constexpr Initial kZeros{Initial::Kind::kConstant, 0, -1};
constexpr Initial kOnes{Initial::Kind::kConstant, 1, -1};

}  // namespace

NormParameters DeclareNorm(const std::string& name, int64_t width, Parameters& parameters) {
  return {parameters.Declare(name + ".weight", {width}, kOnes),
          parameters.Declare(name + ".bias", {width}, kZeros)};
}

EncoderLayer DeclareEncoderLayer(const std::string& name, int64_t width, int64_t feedforward,
                                 Parameters& parameters) {
  const double glorot = std::sqrt(6.0 / static_cast<double>(4 * width));
  const double linear = 1.0 / std::sqrt(static_cast<double>(width));
  const std::string attention = name + ".self_attn.";
  EncoderLayer layer;
  layer.in_proj.weight = parameters.Declare(attention + "in_proj_weight", {3 * width, width},
                                            {Initial::Kind::kUniform, glorot, -1});
  layer.in_proj.bias = parameters.Declare(attention + "in_proj_bias", {3 * width}, kZeros);
  layer.out_proj.weight = parameters.Declare(attention + "out_proj.weight", {width, width},
                                             {Initial::Kind::kUniform, linear, -1});
  layer.out_proj.bias = parameters.Declare(attention + "out_proj.bias", {width}, kZeros);
  layer.linear1 = DeclareLinear(name + ".linear1", width, feedforward, parameters);
  layer.linear2 = DeclareLinear(name + ".linear2", feedforward, width, parameters);
  layer.norm1 = DeclareNorm(name + ".norm1", width, parameters);
  layer.norm2 = DeclareNorm(name + ".norm2", width, parameters);
  return layer;
}

}  // namespace traind
