// The area under the ROC curve; of more than two classes the mean over one class against the rest.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "common/metrics/registry.h"

namespace traind {
namespace {

// A row's probability and whether it is of the class. The key has the order of the probabilities;
// equal ones have equal keys.
struct Place {
  uint32_t key;
  uint32_t hit;
};

uint32_t KeyOf(float probability) {
  const float value = probability + 0.0f;  // -0 becomes 0
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

// Sorts by the key, by three passes over its digits of 11 bits.
void Sort(std::vector<Place>& places) {
  constexpr int kBits = 11;
  constexpr size_t kDigits = size_t{1} << kBits;
  std::vector<Place> sorted(places.size());
  for (int shift = 0; shift < 32; shift += kBits) {
    const auto digit = [shift](const Place& place) { return (place.key >> shift) & (kDigits - 1); };
    std::array<size_t, kDigits + 1> begin{};
    for (const Place& place : places) ++begin[digit(place) + 1];
    for (size_t d = 0; d < kDigits; ++d) begin[d + 1] += begin[d];
    for (const Place& place : places) sorted[begin[digit(place)]++] = place;
    places.swap(sorted);
  }
}

// The area for the class `of` against all others: the chance that a row of the class has the
// higher probability than one of the others; ties count half.
double AucOf(const ClassRows& rows, int32_t of) {
  std::vector<Place> order(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    order[i] = {KeyOf(rows.probabilities[i][of]), rows.labels[i] == of ? 1u : 0u};
  }
  Sort(order);
  double positives_below = 0, rank_sum = 0, positives = 0;
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    double tied = 0;
    for (; end < order.size() && order[end].key == order[begin].key; ++end) {
      tied += order[end].hit;
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
