#include "worker/data/known_targets.h"

#include <cmath>
#include <limits>

namespace traind {

KnownTargets::KnownTargets(int64_t horizon, size_t targets)
    : horizon_(horizon), none_(targets, std::numeric_limits<float>::quiet_NaN()) {}

void KnownTargets::Append(absl::Span<const float> targets) {
  const size_t before = last_.size();
  for (size_t k = 0; k < targets.size(); ++k) {
    const bool first = before == 0;
    last_.push_back(std::isfinite(targets[k]) || first ? targets[k]
                                                       : last_[before - targets.size() + k]);
  }
}

absl::Span<const float> KnownTargets::Before(int64_t row) const {
  if (row < horizon_) return none_;
  return absl::MakeConstSpan(last_).subspan(static_cast<size_t>(row - horizon_) * none_.size(),
                                            none_.size());
}

}  // namespace traind
