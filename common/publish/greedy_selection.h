// Ensemble selection with replacement.
#pragma once

#include <absl/types/span.h>

#include <functional>
#include <vector>

namespace traind {

// Implements Caruana, Niculescu-Mizil, Crew, Ksikes: Ensemble Selection from Libraries of Models
// (ICML 2004). It begins with the best candidate, repeatedly adds the one that makes the mean best,
// and returns the weights of the best mean seen; the first wins a tie. candidates: predictions of
// the same rows. score: scores predictions. better: whether the first score beats the second.
std::vector<double> GreedyWeights(absl::Span<const absl::Span<const float>> candidates,
                                  const std::function<double(absl::Span<const float>)>& score,
                                  const std::function<bool(double, double)>& better,
                                  int rounds = 50);

}  // namespace traind
