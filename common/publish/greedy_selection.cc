#include "common/publish/greedy_selection.h"

#include <cstddef>

namespace traind {
namespace {

// Computes the mean of the chosen candidates and one more.
void Mean(absl::Span<const double> sums, absl::Span<const float> more, size_t count,
          std::vector<float>& out) {
  const double divisor = static_cast<double>(count);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>((sums[i] + more[i]) / divisor);
  }
}

}  // namespace

std::vector<double> GreedyWeights(absl::Span<const absl::Span<const float>> candidates,
                                  const std::function<double(absl::Span<const float>)>& score,
                                  const std::function<bool(double, double)>& better, int rounds) {
  std::vector<double> weights(candidates.size(), 0.0);
  if (candidates.empty()) return weights;
  std::vector<int> counts(candidates.size(), 0);
  std::vector<double> sums(candidates[0].size(), 0.0);
  std::vector<float> mean(candidates[0].size());
  double best_score = 0;
  for (int round = 1; round <= rounds; ++round) {
    size_t chosen = 0;
    double chosen_score = 0;
    for (size_t k = 0; k < candidates.size(); ++k) {
      Mean(sums, candidates[k], static_cast<size_t>(round), mean);
      const double value = score(mean);
      if (k == 0 || better(value, chosen_score)) {
        chosen = k;
        chosen_score = value;
      }
    }
    ++counts[chosen];
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += candidates[chosen][i];
    if (round > 1 && !better(chosen_score, best_score)) continue;
    best_score = chosen_score;
    for (size_t k = 0; k < weights.size(); ++k) {
      weights[k] = static_cast<double>(counts[k]) / round;
    }
  }
  return weights;
}

}  // namespace traind
