// The square root of the mean squared error.
#include <cmath>

#include "common/metrics/registry.h"

namespace traind {
namespace {

double OfValues(absl::Span<const double> predicted, absl::Span<const double> targets) {
  double sum = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    sum += (predicted[i] - targets[i]) * (predicted[i] - targets[i]);
  }
  return std::sqrt(sum / static_cast<double>(targets.size()));
}

}  // namespace

const MetricKind kRmseMetric = {"rmse", /*higher_is_better=*/false, /*is_default=*/true, nullptr,
                                OfValues};

}  // namespace traind
