// The area under the ROC curve; of more than two classes the mean over one class against the rest.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "common/metrics/registry.h"

namespace traind {
namespace {

// The area for the class `of` against all others: the chance that a row of the class has the
// higher probability than one of the others; ties count half.
double AucOf(const ClassRows& rows, int32_t of) {
  std::vector<std::pair<float, bool>> order;
  order.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    order.emplace_back(rows.probabilities[i][of], rows.labels[i] == of);
  }
  std::sort(order.begin(), order.end());
  double positives_below = 0, rank_sum = 0, positives = 0;
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    double tied = 0;
    for (; end < order.size() && order[end].first == order[begin].first; ++end) {
      tied += order[end].second ? 1 : 0;
    }
    rank_sum += tied * (static_cast<double>(begin + 1) + static_cast<double>(end)) / 2;
    positives += tied;
    begin = end;
  }
  positives_below = positives * (positives + 1) / 2;
  const double negatives = static_cast<double>(order.size()) - positives;
  if (positives == 0 || negatives == 0) return kNoScore;
  return (rank_sum - positives_below) / (positives * negatives);
}

double OfClasses(const ClassRows& rows) {
  for (const float* p : rows.probabilities) {
    if (std::any_of(p, p + rows.classes, [](float x) { return std::isnan(x); })) return kNoScore;
  }
  if (rows.classes == 2) return AucOf(rows, 1);
  // One class against the rest, averaged over the classes that these rows have.
  double sum = 0;
  int defined = 0;
  for (int32_t of = 0; of < rows.classes; ++of) {
    const double auc = AucOf(rows, of);
    if (std::isnan(auc)) continue;
    sum += auc;
    ++defined;
  }
  return defined == 0 ? kNoScore : sum / defined;
}

}  // namespace

const MetricKind kAucMetric = {"auc", /*higher_is_better=*/true, /*is_default=*/false, OfClasses};

}  // namespace traind
