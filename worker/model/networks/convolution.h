// Convolutions of networks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace traind {

struct ConvolutionSettings {
  int64_t stride = 1, padding = 0, groups = 1;  // along each axis
};

// Returns at::conv2d or at::conv3d of x, [B, C, H, W] or [B, C, D, H, W], in the precision of
// autocast, except that where oneDNN would leave a part of the kernel's gradient unset it computes
// in float32. Where oneDNN would write past the end of that gradient, x is made smaller first. bias
// may be undefined. Errors: torch's exceptions.
at::Tensor Convolve(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                    const ConvolutionSettings& settings);

}  // namespace traind
