// A convolution and the batch norm that follows it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "worker/model/networks/parameters.h"

namespace traind {

// Options of a forward pass.
struct PassMode {
  bool training = false;
  bool loops = true;  // handwritten loops where there are some
};

struct ConvNormNames {
  std::string conv, norm;
};

struct ConvSizes {
  int64_t in = 0, out = 0;
  int64_t size = 1;  // pixels per side of the kernel, odd
  int64_t stride = 1;
  bool depthwise = false;  // each channel by itself; in = out
};

// Declares, for the names CONV and NORM: CONV.weight [out, in, size, size] (depthwise: [out, 1,
// size, size]), NORM.weight and .bias [out], and the buffers NORM.running_mean and .running_var
// [out]. Threads: immutable. Errors: torch's exceptions.
class ConvNorm {
 public:
  ConvNorm(const ConvNormNames& names, const ConvSizes& sizes, Parameters& parameters);

  // add: added to the norm's output before the ReLU; may be undefined.
  at::Tensor Forward(const std::vector<at::Tensor>& weights, const at::Tensor& x,
                     const at::Tensor& add, bool relu, const PassMode& mode) const;
  void AddPlaces(std::vector<size_t>& places) const;

 private:
  at::Tensor Answer(const std::vector<at::Tensor>& weights, const at::Tensor& x,
                    const at::Tensor& add, bool relu) const;
  at::Tensor Convolve(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) const;

  const ConvSizes sizes_;
  size_t weight_ = 0, norm_weight_ = 0, norm_bias_ = 0, mean_ = 0, variance_ = 0;
};

}  // namespace traind
