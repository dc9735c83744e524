// The share of rows whose most probable class is their label.
#include "common/metrics/registry.h"

namespace traind {
namespace {

double OfClasses(const ClassRows& rows) {
  if (rows.size() == 0) return kNoScore;
  size_t right = 0;
  for (size_t i = 0; i < rows.size(); ++i) right += rows.Guess(i) == rows.labels[i];
  return static_cast<double>(right) / static_cast<double>(rows.size());
}

}  // namespace

const MetricKind kAccuracyMetric = {"accuracy", /*higher_is_better=*/true, /*is_default=*/true,
                                    OfClasses};

}  // namespace traind
