// Ensemble selection with replacement.
#pragma once

#include <absl/types/span.h>

#include <functional>
#include <vector>

namespace traind {

// Caruana, Niculescu-Mizil, Crew, Ksikes: Ensemble Selection from Libraries of Models (ICML
// 2004). Begins with the best candidate, adds again and again the one that makes the mean
// best, and returns the weights of the best mean seen; of equal ones the first.
// candidates: predictions of the same rows. better: whether the first predictions' score
// beats the second's; score: of predictions.
std::vector<double> GreedyWeights(absl::Span<const absl::Span<const float>> candidates,
                                  const std::function<double(absl::Span<const float>)>& score,
                                  const std::function<bool(double, double)>& better,
                                  int rounds = 50);

}  // namespace traind
