// AdamW over all parameters of a model, one fused call a step.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "worker/model/parameters.h"

namespace traind {

// Steps whose gradient is longer than this (L2 norm over all parameters) are
// scaled down to it: a rare outlier must not upset the moments.
inline constexpr double kMaxGradientNorm = 5.0;

// Decoupled weight decay (Loshchilov, Hutter 2019), with torch's defaults for the
// betas and epsilon. Gradients longer than kMaxGradientNorm together are scaled
// down to it first.
// Threads: confined to one. Errors: torch's exceptions.
class AdamW {
 public:
  // `parameters` are allocated, and outlive it.
  AdamW(const Parameters& parameters, double weight_decay);

  // gradients: one per parameter, like it; may be changed. found_inf: [1] float32, 1 =
  // do nothing (fp16, see LossScaler).
  void Step(const std::vector<at::Tensor>& gradients, double learning_rate,
            const std::optional<at::Tensor>& found_inf);

  // Like parameters.flat().
  const at::Tensor& exp_avg() const { return exp_avg_; }
  const at::Tensor& exp_avg_sq() const { return exp_avg_sq_; }
  // Steps taken, not counting skipped ones. Waits for the device.
  int64_t steps() const;
  void set_steps(int64_t steps);

 private:
  std::optional<at::Tensor> ClippingFactor(const std::vector<at::Tensor>& gradients) const;

  const Parameters& parameters_;
  const double weight_decay_;
  at::Tensor exp_avg_, exp_avg_sq_;
  std::vector<at::Tensor> exp_avgs_, exp_avg_sqs_;  // views of them
  std::vector<at::Tensor> steps_;                   // one scalar, as often as there are parameters
};

}  // namespace traind
