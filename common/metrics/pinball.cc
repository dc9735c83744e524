// The mean pinball loss of a quantile: errors below a value weigh the level, those above it the
// rest.
#include <algorithm>

#include "common/metrics/registry.h"

namespace traind {
namespace {

double OfLevel(absl::Span<const double> predicted, absl::Span<const double> targets, double level) {
  double sum = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    const double above = targets[i] - predicted[i];
    sum += std::max(level * above, (level - 1) * above);
  }
  return sum / static_cast<double>(targets.size());
}

}  // namespace

const MetricKind kPinballMetric = {"pinball",
                                   /*higher_is_better=*/false,
                                   /*is_default=*/false,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   Tuning::kNone,
                                   OfLevel};

}  // namespace traind
