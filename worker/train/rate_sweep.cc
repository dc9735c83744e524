#include "worker/train/rate_sweep.h"

#include <algorithm>
#include <cmath>

namespace traind {
namespace {

constexpr double kSmoothing = 0.9;
constexpr double kDiverged = 4;
constexpr size_t kFirst = 10;  // steps that the average needs to settle
// Steps before and behind a rate over which the fall is measured, so that it is more than the noise
// of single batches.
constexpr size_t kAround = 8;

}  // namespace

double RateSweep::RateOf(int64_t step) const {
  const double share = static_cast<double>(step) / static_cast<double>(steps_ - 1);
  return least_ * std::pow(most_ / least_, share);
}

bool RateSweep::Add(double loss) {
  average_ = kSmoothing * average_ + (1 - kSmoothing) * loss;
  const double taken = static_cast<double>(smooth_.size() + 1);
  const double smooth = average_ / (1 - std::pow(kSmoothing, taken));
  if (!std::isfinite(smooth)) return false;
  smooth_.push_back(smooth);
  const double best = *std::min_element(smooth_.begin(), smooth_.end());
  if (smooth > kDiverged * best && smooth_.size() > kFirst) return false;
  return static_cast<int64_t>(smooth_.size()) < steps_;
}

std::optional<double> RateSweep::Steepest() const {
  const auto least =
      static_cast<size_t>(std::min_element(smooth_.begin(), smooth_.end()) - smooth_.begin());
  double steepest = 0;
  std::optional<double> rate;
  for (size_t i = kFirst; i < least; ++i) {
    const size_t end = std::min(least, i + kAround), begin = i - std::min(i, kAround);
    const double slope = (smooth_[end] - smooth_[begin]) / static_cast<double>(end - begin);
    if (slope >= steepest) continue;
    steepest = slope;
    rate = RateOf(static_cast<int64_t>(i));
  }
  return rate;
}

}  // namespace traind
