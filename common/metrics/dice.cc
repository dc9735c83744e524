// 2 |A and B| / (|A| + |B|); the score of two empty masks is 1.
#include "common/metrics/registry.h"

namespace traind {
namespace {

double OfMasks(int64_t both, int64_t predicted, int64_t wanted) {
  const int64_t sum = predicted + wanted;
  return sum == 0 ? 1.0 : 2.0 * static_cast<double>(both) / static_cast<double>(sum);
}

}  // namespace

const MetricKind kDiceMetric = {
    "dice", /*higher_is_better=*/true, /*is_default=*/true, nullptr, nullptr, OfMasks};

}  // namespace traind
