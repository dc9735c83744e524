// |A and B| / |A or B|; the score of two empty masks is 1.
#include "common/metrics/registry.h"

namespace traind {
namespace {

double OfMasks(int64_t both, int64_t predicted, int64_t wanted) {
  const int64_t either = predicted + wanted - both;
  return either == 0 ? 1.0 : static_cast<double>(both) / static_cast<double>(either);
}

}  // namespace

const MetricKind kIouMetric = {
    "iou", /*higher_is_better=*/true, /*is_default=*/false, nullptr, nullptr, OfMasks};

}  // namespace traind
