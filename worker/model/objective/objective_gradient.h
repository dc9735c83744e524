// Handwritten losses and their gradients by a network's outputs. ObjectiveLoss leaves the
// latter to autograd.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/model/objective/objective.h"

namespace traind {

// The resident targets; one of the two pointers is null.
struct Targets {
  const int64_t* classes = nullptr;  // [N]
  const float* values = nullptr;     // [N, outputs], after ObjectiveLoss::Standardise
};

// Computes losses and their gradients for some samples, on the CPU.
// Threads: confined to one.
class ObjectiveGradient {
 public:
  ObjectiveGradient(const Objective& objective, const std::vector<double>& target_mean,
                    const std::vector<double>& target_scale, Targets targets, int64_t outputs);

  // output: [count, outputs] of the samples `rows`; it becomes the gradient of `weight` x the
  // mean loss. Returns the sum of the rows' losses.
  double Run(const int32_t* rows, int64_t count, double weight, float* output);

 private:
  double CrossEntropyRow(int64_t target, float weight, float* output) const;

  const Objective objective_;
  const Targets targets_;
  const int64_t outputs_;
  std::vector<float> mean_, scale_;  // SMAPE only: [outputs]
  std::vector<float> class_weights_;
  float class_weights_sum_ = 0;
};

}  // namespace traind
