// The gradients of SMAPE, for which neither library has an objective.
#pragma once

#include <absl/types/span.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace traind {

// SMAPE of a row is 2 |p - t| / (|p| + |t|). Threads: confined to one.
class SmapeGradients {
 public:
  // weights: empty, or one for each row.
  SmapeGradients(absl::Span<const float> targets, absl::Span<const float> weights)
      : targets_(targets.begin(), targets.end()),
        weights_(weights.begin(), weights.end()),
        gradients(targets.size()),
        hessians(targets.size()) {
    double sum = 0;
    for (const float target : targets) sum += std::fabs(target);
    size_ = std::max(1e-12, targets.empty() ? 1 : sum / static_cast<double>(targets.size()));
  }

  // Sets both for these predictions. The true second derivative is 0 or negative nearly everywhere;
  // in its place stands the one with which a Newton step over a single row has the row's own size.
  // The loss is scaled by the square of the mean size of targets, so that limits on sums of
  // hessians mean what they do for the squared error.
  template <class Number>
  void At(const Number* predictions) {
    for (size_t i = 0; i < targets_.size(); ++i) {
      const double p = predictions[i], t = targets_[i];
      const double error = p - t;
      const double total = std::max(std::fabs(p) + std::fabs(t), kLeastShare * size_);
      const double weight = weights_.empty() ? 1 : weights_[i];
      const double share = size_ / total;
      const double slope =
          (error > 0) - (error < 0) - std::fabs(error) / total * ((p > 0) - (p < 0));
      gradients[i] = static_cast<float>(weight * slope * share * size_);
      hessians[i] = static_cast<float>(weight * share * share);
    }
  }

 private:
  // Rows near 0 do not outweigh all others.
  static constexpr double kLeastShare = 0.01;

  std::vector<float> targets_, weights_;
  double size_ = 1;

 public:
  std::vector<float> gradients, hessians;
};

}  // namespace traind
