// The mean negative logarithm of the probability that a row's label was given.
#include <algorithm>
#include <cmath>
#include <limits>

#include "common/metrics/registry.h"

namespace traind {
namespace {

double OfClasses(const ClassRows& rows) {
  if (rows.size() == 0) return kNoScore;
  // Clipped as scikit-learn clips float32.
  const double epsilon = std::numeric_limits<float>::epsilon();
  double sum = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const double p = rows.probabilities[i][rows.labels[i]];
    sum -= std::log(std::min(std::max(p, epsilon), 1 - epsilon));
  }
  return sum / static_cast<double>(rows.size());
}

}  // namespace

const MetricKind kLogLossMetric = {
    "logloss", /*higher_is_better=*/false, /*is_default=*/false, OfClasses, nullptr,
    nullptr,   Tuning::kTemperature};

}  // namespace traind
