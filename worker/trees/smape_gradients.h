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
  // in its place stands that of the parabola that touches |p - t| from above, so that a Newton
  // step over a single row ends at its target and no step makes things worse. Both are scaled so
  // that limits on sums of hessians mean what they do for the squared error.
  template <class Number>
  void At(const Number* predictions) {
    double sum = 0;
    for (size_t i = 0; i < targets_.size(); ++i) sum += std::fabs(predictions[i] - targets_[i]);
    const double mean = std::max(1e-12 * size_, sum / static_cast<double>(targets_.size()));
    for (size_t i = 0; i < targets_.size(); ++i) {
      const double p = predictions[i], t = targets_[i];
      const double error = p - t, far = std::fabs(error);
      const double total = std::max(std::fabs(p) + std::fabs(t), kLeastShare * size_);
      const double weight = (weights_.empty() ? 1 : weights_[i]) * size_ / total;
      const double slope = (error > 0) - (error < 0) - far / total * ((p > 0) - (p < 0));
      gradients[i] = static_cast<float>(weight * slope * mean);
      hessians[i] = static_cast<float>(weight * mean / std::max(far, kLeastError * mean));
    }
  }

 private:
  // Rows near 0 do not outweigh all others.
  static constexpr double kLeastShare = 0.01;
  static constexpr double kLeastError = 0.1;  // of the mean one

  std::vector<float> targets_, weights_;
  double size_ = 1;

 public:
  std::vector<float> gradients, hessians;
};

}  // namespace traind
