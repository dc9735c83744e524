#include "server/reports/loss_curve.h"

#include <algorithm>
#include <cmath>

namespace traind {
namespace {

constexpr size_t kFewest = 4;
constexpr double kPowers[] = {0.25, 0.5, 1, 2, 4};

struct Fit {
  double value = 0;  // at the requested epoch
  double error = 0;  // root mean square
};

// Fits y = limit + amplitude x epoch^-p.
Fit FitPower(const std::vector<std::pair<double, double>>& points, double p, double epoch) {
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (const auto& [e, y] : points) {
    const double x = std::pow(e, -p);
    n += 1, sx += x, sy += y, sxx += x * x, sxy += x * y;
  }
  const double spread = n * sxx - sx * sx;
  const double amplitude = spread > 0 ? (n * sxy - sx * sy) / spread : 0;
  const double limit = (sy - amplitude * sx) / n;
  double squares = 0;
  for (const auto& [e, y] : points) {
    const double miss = limit + amplitude * std::pow(e, -p) - y;
    squares += miss * miss;
  }
  return {limit + amplitude * std::pow(epoch, -p), std::sqrt(squares / n)};
}

}  // namespace

std::optional<Extrapolation> Extrapolate(const std::vector<std::pair<double, double>>& points,
                                         double epoch, bool higher_is_better) {
  // Turns the metric into the best value so far, as a falling curve.
  std::vector<std::pair<double, double>> best;
  for (const auto& [e, value] : points) {
    if (e <= 0 || !std::isfinite(value)) continue;
    const double y = higher_is_better ? -value : value;
    best.emplace_back(e, best.empty() ? y : std::min(y, best.back().second));
  }
  if (best.size() < kFewest || epoch <= best.back().first) return std::nullopt;
  const double now = best.back().second;
  best.erase(best.begin(), best.begin() + static_cast<ptrdiff_t>(best.size() / 4));
  std::vector<Fit> fits;
  for (const double p : kPowers) fits.push_back(FitPower(best, p, epoch));
  const auto by_error = [](const Fit& a, const Fit& b) { return a.error < b.error; };
  const Fit chosen = *std::min_element(fits.begin(), fits.end(), by_error);
  double least = chosen.value, most = chosen.value;
  for (const Fit& fit : fits) {
    if (fit.error > 2 * chosen.error) continue;
    least = std::min(least, fit.value - fit.error);
    most = std::max(most, fit.value + fit.error);
  }
  const auto value = [&](double y) {
    return higher_is_better ? -std::min(y, now) : std::min(y, now);
  };
  Extrapolation out;
  out.now = value(now);
  out.expected = value(chosen.value);
  out.low = std::min(value(least), value(most));
  out.high = std::max(value(least), value(most));
  return out;
}

}  // namespace traind
