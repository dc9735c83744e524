#include "worker/model/networks/conv_norm.h"

#include <ATen/TensorOperators.h>

#include <cmath>

#include "worker/model/networks/batch_norm.h"
#include "worker/model/networks/convolution.h"

namespace traind {

ConvNorm::ConvNorm(const ConvNormNames& names, const ConvSizes& sizes, Parameters& parameters)
    : sizes_(sizes) {
  const int64_t out = sizes.out, size = sizes.size;
  // He et al. 2015: outputs keep the variance of inputs that passed through a ReLU.
  const int64_t fan_out = size * size * (sizes.depthwise ? 1 : out);
  const double scale = std::sqrt(2.0 / static_cast<double>(fan_out));
  const auto constant = [](double value) { return Initial{Initial::Kind::kConstant, value, -1}; };
  weight_ =
      parameters.Declare(names.conv + ".weight", {out, sizes.depthwise ? 1 : sizes.in, size, size},
                         {Initial::Kind::kNormal, scale, -1});
  norm_weight_ = parameters.Declare(names.norm + ".weight", {out}, constant(1));
  norm_bias_ = parameters.Declare(names.norm + ".bias", {out}, constant(0));
  mean_ = parameters.DeclareBuffer(names.norm + ".running_mean", {out}, 0);
  variance_ = parameters.DeclareBuffer(names.norm + ".running_var", {out}, 1);
}

at::Tensor ConvNorm::Convolve(const at::Tensor& x, const at::Tensor& weight,
                              const at::Tensor& bias) const {
  const int64_t padding = sizes_.size / 2;
  return traind::Convolve(x, weight, bias,
                          {sizes_.stride, padding, sizes_.depthwise ? sizes_.out : 1});
}

at::Tensor ConvNorm::Forward(const std::vector<at::Tensor>& weights, const at::Tensor& x,
                             const at::Tensor& add, bool relu, const PassMode& mode) const {
  if (mode.loops && !mode.training) return Answer(weights, x, add, relu);
  // With a single channel the memory order of the output is ambiguous, so it is set here.
  const at::Tensor y = Convolve(x, weights[weight_], {}).contiguous(at::MemoryFormat::ChannelsLast);
  const BatchNorm norm{weights[norm_weight_], weights[norm_bias_], weights[mean_],
                       weights[variance_]};
  return NormAddAct(norm, y, add, relu, mode.training, mode.loops);
}

// Outside of training the norm is a factor and an offset per channel, which fold into the
// convolution.
at::Tensor ConvNorm::Answer(const std::vector<at::Tensor>& weights, const at::Tensor& x,
                            const at::Tensor& add, bool relu) const {
  const at::Tensor factor =
      weights[norm_weight_] * (weights[variance_] + BatchNorm::kEps).rsqrt();  // [out]
  const at::Tensor bias = weights[norm_bias_] - weights[mean_] * factor;
  at::Tensor y = Convolve(x, weights[weight_] * factor.view({-1, 1, 1, 1}), bias);
  if (add.defined()) y = y.add_(add);
  return relu ? y.relu_() : y;
}

void ConvNorm::AddPlaces(std::vector<size_t>& places) const {
  for (const size_t at : {weight_, norm_weight_, norm_bias_, mean_, variance_}) {
    places.push_back(at);
  }
}

}  // namespace traind
