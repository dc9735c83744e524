#include "worker/model/networks/convolution.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv3d.h>

#include <optional>

#include "worker/device/autocast.h"

namespace traind {
namespace {

// In bfloat16, oneDNN as LibTorch 2.11 has it does not write the gradient of some kernel planes,
// and what was in the memory before becomes the gradient: of a volume that is 2 deep, and of an
// image narrower than the stride, whose outer planes meet padding alone. Found by filling all
// memory before it is used, over extents of 1 to 16, kernels of 1 to 16 and strides of 1 to 4;
// float32 has none of it.
bool LosesGradient(const at::Tensor& x, const ConvolutionSettings& settings) {
  if (settings.padding == 0) return false;
  return x.size(-1) < settings.stride || (x.dim() == 5 && x.size(2) <= 2);
}

// oneDNN as LibTorch 2.11 has it writes past the end of the gradient of a 1 x 1 kernel with a
// stride if it has some numbers of threads, such as 3 or 5 threads with 8 channels: memory is
// damaged, and the process ends sooner or later. So the pixels that the stride skips are removed
// from x, and the convolution has no stride.
bool DamagesMemory(const at::Tensor& weight, const ConvolutionSettings& settings) {
  return settings.stride > 1 && settings.padding == 0 &&
         weight.numel() == weight.size(0) * weight.size(1);
}

at::Tensor WithoutSkipped(at::Tensor x, int64_t stride) {
  for (int64_t dim = 2; dim < x.dim(); ++dim) x = x.slice(dim, 0, std::nullopt, stride);
  return x.contiguous(x.dim() == 5 ? at::MemoryFormat::ChannelsLast3d
                                   : at::MemoryFormat::ChannelsLast);
}

at::Tensor InAutocast(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      const ConvolutionSettings& settings) {
  const auto& [stride, padding, groups] = settings;
  return x.dim() == 5 ? at::conv3d(x, weight, bias, stride, padding, /*dilation=*/1, groups)
                      : at::conv2d(x, weight, bias, stride, padding, /*dilation=*/1, groups);
}

}  // namespace

at::Tensor Convolve(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                    const ConvolutionSettings& settings) {
  if (x.is_cpu() && DamagesMemory(weight, settings)) {
    return Convolve(WithoutSkipped(x, settings.stride), weight, bias, {1, 0, settings.groups});
  }
  const AutocastState state = CurrentAutocast(x.device().type());
  if (!x.is_cpu() || !state.enabled || !LosesGradient(x, settings)) {
    return InAutocast(x, weight, bias, settings);
  }
  struct WithoutAutocast {
    explicit WithoutAutocast(const AutocastState& before) : before(before) {
      SetAutocast(at::kCPU, {false, before.type});
    }
    ~WithoutAutocast() { SetAutocast(at::kCPU, before); }
    const AutocastState before;
  };
  const WithoutAutocast without(state);
  return InAutocast(x.to(at::kFloat), weight, bias, settings).to(state.type);
}

}  // namespace traind
