// Optimizers over all parameters of a model at once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "worker/learner/optimizer_spec.h"

namespace traind {

// Gradients and state are flat tensors, like the weights (Parameters::flat()); their
// gaps hold zeros and stay so.
// Threads: confined to one. Errors: torch's exceptions.
class Optimizer {
 public:
  // weights: [size] float32. fused: on the CPU one loop of our own does it all, else
  // and on GPUs torch's operators do.
  Optimizer(const OptimizerSpec& spec, at::Tensor weights, bool fused);

  // gradient: [size] float32; may be changed. clip_norm: gradients that are longer
  // (L2 norm) are scaled down to it, 0: never. found_inf: [1] float32, 1 = do nothing
  // (fp16, see LossScaler).
  void Step(const at::Tensor& gradient, double learning_rate, double clip_norm,
            const std::optional<at::Tensor>& found_inf);

  // GPUs: from now on the learning rate is this [] float32 tensor's, whatever Step() is
  // told; undefined: Step()'s again.
  void TakeRateFrom(at::Tensor rate) { rate_ = std::move(rate); }

  // What a checkpoint has to keep, by PyTorch's names: [size] float32 each.
  const std::map<std::string, at::Tensor>& slots() const { return slots_; }
  // Of the last step, before it was clipped; 0 without clipping. Waits for the device.
  double gradient_norm() const;
  // Steps taken, not counting skipped ones. Waits for the device.
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

  const OptimizerSpec spec_;
  const at::Tensor weights_;
  const bool fused_;
  std::map<std::string, at::Tensor> slots_;
  double norm_ = 0;
  at::Tensor device_norm_;  // [] float32, instead, on a GPU
  at::Tensor rate_;
  at::Tensor steps_;  // [] float32, on the device
};

// L2 norm of a [size] float32 tensor on the CPU.
double NormOnHost(const at::Tensor& flat);

}  // namespace traind
