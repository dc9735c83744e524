#include "worker/series/nelder_mead.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace traind {
namespace {

constexpr double kFlat = 1e-8;

bool Lower(const Minimum& a, const Minimum& b) { return a.value < b.value; }

// Returns center + times * (point - center).
std::vector<double> Along(const std::vector<double>& center, const std::vector<double>& point,
                          double times) {
  std::vector<double> to(center.size());
  for (size_t i = 0; i < to.size(); ++i) to[i] = center[i] + times * (point[i] - center[i]);
  return to;
}

std::vector<double> CenterWithoutLast(const std::vector<Minimum>& simplex) {
  std::vector<double> center(simplex[0].at.size());
  for (size_t k = 0; k + 1 < simplex.size(); ++k) {
    for (size_t i = 0; i < center.size(); ++i) center[i] += simplex[k].at[i];
  }
  for (double& x : center) x /= static_cast<double>(simplex.size() - 1);
  return center;
}

}  // namespace

Minimum Minimise(const std::function<double(const std::vector<double>&)>& function,
                 const std::vector<double>& start, const std::vector<double>& steps,
                 int most_calls) {
  int calls = 0;
  const auto at = [&](std::vector<double> point) {
    ++calls;
    const double value = function(point);
    return Minimum{std::move(point), std::isnan(value) ? INFINITY : value};
  };
  std::vector<Minimum> simplex = {at(start)};
  for (size_t i = 0; i < start.size(); ++i) {
    std::vector<double> corner = start;
    corner[i] += steps[i];
    simplex.push_back(at(std::move(corner)));
  }
  while (true) {
    std::sort(simplex.begin(), simplex.end(), Lower);
    const double low = simplex.front().value, high = simplex.back().value;
    if (calls >= most_calls || high - low <= kFlat * (std::fabs(low) + kFlat)) break;
    Minimum& worst = simplex.back();
    const std::vector<double> center = CenterWithoutLast(simplex);
    Minimum reflected = at(Along(center, worst.at, -1));
    if (Lower(reflected, simplex.front())) {
      Minimum expanded = at(Along(center, worst.at, -2));
      worst = Lower(expanded, reflected) ? std::move(expanded) : std::move(reflected);
    } else if (Lower(reflected, simplex[simplex.size() - 2])) {
      worst = std::move(reflected);
    } else {
      const bool outside = Lower(reflected, worst);
      Minimum contracted = at(Along(center, worst.at, outside ? -0.5 : 0.5));
      if (Lower(contracted, outside ? reflected : worst)) {
        worst = std::move(contracted);
      } else {
        for (size_t k = 1; k < simplex.size(); ++k) {
          simplex[k] = at(Along(simplex[0].at, simplex[k].at, 0.5));
        }
      }
    }
  }
  return simplex.front();
}

}  // namespace traind
