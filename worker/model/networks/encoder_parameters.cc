#include "worker/model/networks/encoder_parameters.h"

#include <cmath>
#include <utility>

namespace traind {

LinearParameters DeclareSmall(const std::string& name, std::vector<int64_t> shape,
                              Parameters& parameters) {
  const int64_t outputs = shape[0];
  return {parameters.Declare(name + ".weight", std::move(shape), kSmallNormal),
          parameters.Declare(name + ".bias", {outputs}, kZeros)};
}

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
