// Loss scaling for fp16, with the dynamics of PyTorch's GradScaler.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace traind {

// Gradients of small losses vanish in fp16. So the loss is multiplied by `scale` before the
// backward pass, and the gradients are divided by it afterwards. If gradients overflow, the
// step is skipped and the scale is halved; after 2000 good steps in a row it is doubled. All
// values stay on the device.
// Threads: confined to one. Errors: torch's exceptions.
class LossScaler {
 public:
  static constexpr double kInitialScale = 65536;
  static constexpr double kGrowth = 2, kBackoff = 0.5;
  static constexpr int64_t kGrowthInterval = 2000;

  explicit LossScaler(c10::Device device);

  at::Tensor Scale(const at::Tensor& loss) const { return loss.mul(scale_); }
  // Divides the gradients by the scale. Returns [1] float32: 1 if one of them is not finite.
  const at::Tensor& Unscale(const std::vector<at::Tensor>& gradients);
  // Call it after the step: adjusts the scale to what Unscale() found.
  void Update();

  // Both wait for the device.
  double scale() const;
  int64_t growth_tracker() const;
  void Restore(double scale, int64_t growth_tracker);

 private:
  at::Tensor scale_;           // [1] float32
  at::Tensor growth_tracker_;  // [1] int32
  at::Tensor found_inf_;       // [1] float32
};

}  // namespace traind
