// The symmetric mean absolute percentage error, from 0 to 200.
#include <cmath>

#include "common/metrics/registry.h"

namespace traind {
namespace {

double OfValues(absl::Span<const double> predicted, absl::Span<const double> targets) {
  double sum = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    const double size = std::abs(predicted[i]) + std::abs(targets[i]);
    // Both zero: no error.
    if (size != 0) sum += 2 * std::abs(predicted[i] - targets[i]) / size;
  }
  return 100 * sum / static_cast<double>(targets.size());
}

}  // namespace

const MetricKind kSmapeMetric = {"smape", /*higher_is_better=*/false, /*is_default=*/false, nullptr,
                                 OfValues};

}  // namespace traind
