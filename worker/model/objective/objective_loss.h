// Targets in the form that training needs, losses, and answers computed from a network's
// outputs.
#pragma once

#include <ATen/core/Tensor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <vector>

#include "worker/model/objective/objective.h"

namespace traind {

// Converts targets, and computes losses and answers, on any device.
// Threads: immutable. Errors: torch's exceptions.
class ObjectiveLoss {
 public:
  // target_mean, target_scale: [outputs], for regression; empty: 0 and 1.
  ObjectiveLoss(const Objective& objective, const std::vector<double>& target_mean,
                const std::vector<double>& target_scale, c10::Device device);

  bool classification() const { return objective_.loss == LossKind::kCrossEntropy; }
  const Objective& objective() const { return objective_; }

  // Converts values [rows, outputs] from the target's own unit to the form of `wanted` below.
  void Standardise(std::vector<float>& values) const;

  // output: [B, outputs] float32. wanted: [B] int64 classes, or [B, outputs] float32. For
  // masks, output: [B, outputs, D, H, W], wanted: [B, 1, D, H, W] float32, from 0 to
  // the number of classes.
  // reduction: the mean over rows and outputs, or the sum over rows of the means over outputs.
  at::Tensor Loss(const at::Tensor& output, const at::Tensor& wanted, int64_t reduction) const;

  // Returns probabilities, or values in the target's own unit, in the shape of output.
  at::Tensor Answer(const at::Tensor& output) const;
  // The same in place, on the CPU.
  void Answer(absl::Span<float> output, int64_t outputs) const;

 private:
  at::Tensor MeanLoss(const at::Tensor& output, const at::Tensor& wanted, int64_t reduction) const;

  const Objective objective_;
  std::vector<double> mean_, scale_;
  at::Tensor class_weights_;               // [outputs], or undefined
  at::Tensor mean_tensor_, scale_tensor_;  // [outputs], or undefined
};

}  // namespace traind
