// The coefficient of determination: 1 minus the squared error over the targets' own spread.
#include "common/metrics/registry.h"

namespace traind {
namespace {

double OfValues(absl::Span<const double> predicted, absl::Span<const double> target) {
  if (target.size() < 2) return kNoScore;
  double mean = 0;
  for (const double t : target) mean += t;
  mean /= static_cast<double>(target.size());
  double residual = 0, total = 0;
  for (size_t i = 0; i < target.size(); ++i) {
    residual += (target[i] - predicted[i]) * (target[i] - predicted[i]);
    total += (target[i] - mean) * (target[i] - mean);
  }
  if (total == 0) return residual == 0 ? 1 : 0;
  return 1 - residual / total;
}

}  // namespace

const MetricKind kR2Metric = {"r2", /*higher_is_better=*/true, /*is_default=*/false, nullptr,
                              OfValues};

}  // namespace traind
