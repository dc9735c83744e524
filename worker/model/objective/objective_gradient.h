// Losses and their gradients by a network's outputs, by hand: what ObjectiveLoss leaves
// to autograd.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/model/objective/objective.h"

namespace traind {

// The resident targets; one of both is null.
struct Targets {
  const int64_t* classes = nullptr;  // [N]
  const float* values = nullptr;     // [N, outputs], as ObjectiveLoss::Standardise leaves them
};

// Threads: confined to one.
class ObjectiveGradient {
 public:
  ObjectiveGradient(const Objective& objective, const std::vector<double>& target_mean,
                    const std::vector<double>& target_scale, Targets targets, int64_t outputs);

  // output: [count, outputs] of the samples `rows`; becomes the gradient of `weight` x
  // the mean loss. Returns the sum over rows of the losses.
  double Run(const int32_t* rows, int64_t count, double weight, float* output);

 private:
  double CrossEntropyRow(int64_t target, float weight, float* output) const;

  const Objective objective_;
  const Targets targets_;
  const int64_t outputs_;
  std::vector<float> mean_, scale_;  // of SMAPE: [outputs]
  std::vector<float> class_weights_;
  float class_weights_sum_ = 0;
};

}  // namespace traind
