// F1 of the second of two classes; of more classes the mean over those that occur (macro).
#include <vector>

#include "common/metrics/registry.h"

namespace traind {
namespace {

double OfClasses(const ClassRows& rows) {
  if (rows.size() == 0) return kNoScore;
  const auto classes = static_cast<size_t>(rows.classes);
  std::vector<double> hits(classes), predicted(classes), actual(classes);
  for (size_t i = 0; i < rows.size(); ++i) {
    const int32_t guess = rows.Guess(i);
    predicted[static_cast<size_t>(guess)] += 1;
    actual[static_cast<size_t>(rows.labels[i])] += 1;
    if (guess == rows.labels[i]) hits[static_cast<size_t>(guess)] += 1;
  }
  const auto f1 = [&](size_t c) {
    const double both = predicted[c] + actual[c];
    return both == 0 ? 0 : 2 * hits[c] / both;
  };
  if (rows.classes == 2) return f1(1);
  double sum = 0;
  int seen = 0;
  for (size_t c = 0; c < classes; ++c) {
    if (predicted[c] + actual[c] == 0) continue;
    sum += f1(c);
    ++seen;
  }
  return sum / seen;
}

}  // namespace

const MetricKind kF1Metric = {
    "f1",    /*higher_is_better=*/true, /*is_default=*/false, OfClasses, nullptr,
    nullptr, Tuning::kThreshold};

}  // namespace traind
