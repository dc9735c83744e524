// The mean absolute error.
#include <cmath>

#include "common/metrics/registry.h"

namespace traind {
namespace {

double OfValues(absl::Span<const double> predicted, absl::Span<const double> targets) {
  double sum = 0;
  for (size_t i = 0; i < targets.size(); ++i) sum += std::abs(predicted[i] - targets[i]);
  return sum / static_cast<double>(targets.size());
}

}  // namespace

const MetricKind kMaeMetric = {"mae", /*higher_is_better=*/false, /*is_default=*/false, nullptr,
                               OfValues};

}  // namespace traind
