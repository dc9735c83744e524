// Optimizers that update all parameters of a model at once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "worker/learner/optimizer_settings.h"

namespace traind {

// Gradients and state are flat tensors like the weights (Parameters::flat()). Their gaps hold
// zeros and stay zero.
// Threads: confined to one. Errors: torch's exceptions.
class Optimizer {
 public:
  // weights: [size] float32. fused: on the CPU a single loop of our own does the whole step;
  // otherwise, and on GPUs, torch's operators do.
  Optimizer(const OptimizerSettings& spec, at::Tensor weights, bool fused);

  // gradient: [size] float32; may be changed. clip_norm: gradients with a larger L2 norm are
  // scaled down to it; 0: no clipping. found_inf: [1] float32, 1 skips the step
  // (fp16, see LossScaler).
  void Step(const at::Tensor& gradient, double learning_rate, double clip_norm,
            const std::optional<at::Tensor>& found_inf);

  // GPUs: from now on the learning rate is read from this [] float32 tensor, and Step()'s is
  // ignored. An undefined tensor restores Step()'s.
  void SetRateTensor(at::Tensor rate) { rate_ = std::move(rate); }

  // The state for a checkpoint, by PyTorch's names: [size] float32 each.
  const std::map<std::string, at::Tensor>& slots() const { return slots_; }
  // Gradient norm of the last step before clipping; 0 without clipping. Waits for the device.
  double gradient_norm() const;
  // Number of steps, without skipped ones. Waits for the device.
  int64_t steps() const;
  void set_steps(int64_t steps);

 private:
  void FusedStep(const float* gradient, double learning_rate, double gradient_scale);
  void OperatorStep(const at::Tensor& gradient, double learning_rate,
                    const std::optional<at::Tensor>& scale,
                    const std::optional<at::Tensor>& found_inf);
  void RmsPropOperators(at::Tensor gradient, double learning_rate,
                        const std::optional<at::Tensor>& scale,
                        const std::optional<at::Tensor>& found_inf);
  float* SlotData(const char* name) const;

  const OptimizerSettings spec_;
  const at::Tensor weights_;
  const bool fused_;
  std::map<std::string, at::Tensor> slots_;
  double norm_ = 0;
  at::Tensor device_norm_;  // [] float32, used instead on a GPU
  at::Tensor rate_;
  at::Tensor steps_;  // [] float32, on the device
};

// The L2 norm of a [size] float32 tensor on the CPU.
double NormOnHost(const at::Tensor& flat);

}  // namespace traind
