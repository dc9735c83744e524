// Extrapolates a fold's validation metric over its epochs.
// Threads: safe, pure.
#pragma once

#include <optional>
#include <utility>
#include <vector>

namespace traind {

struct Extrapolation {
  double now = 0;                          // the best so far
  double low = 0, expected = 0, high = 0;  // low <= expected <= high
};

// points: (epoch, metric), ascending. Only the best value so far counts, because the best weights
// are kept. Fits limit + amplitude x epoch^-p for several p (each a straight line, by least squares
// over the later three quarters) and evaluates the fits at `epoch`. The fit with the least error is
// `expected`. The band contains every fit with less than twice that error, widened by its error on
// both sides, but nothing worse than `now`. nullopt: fewer than four points, or `epoch` has been
// reached.
std::optional<Extrapolation> Extrapolate(const std::vector<std::pair<double, double>>& points,
                                         double epoch, bool higher_is_better);

}  // namespace traind
