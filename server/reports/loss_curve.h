// How a fold's validation metric went over its epochs, and where it would have gone.
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

// points: (epoch, metric), ascending; what counts is the best so far, as the best
// weights are kept. Fits limit + amplitude x epoch^-p for several p (a straight line
// each, least squares over the later three quarters) and reads them at `epoch`: the
// fit with the least error is expected; the band holds every fit whose error is not
// twice that, and its error on both sides, but nothing worse than `now`. Empty: fewer
// than four points, or an epoch that has been reached.
std::optional<Extrapolation> Extrapolate(const std::vector<std::pair<double, double>>& points,
                                         double epoch, bool higher_is_better);

}  // namespace traind
