#include "worker/series/season.h"

#include <cmath>
#include <numeric>

namespace traind {
namespace {

constexpr double kSignificant = 1.645;  // 90 % of the normal distribution, two-sided

double MeanOf(absl::Span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The mean over one season around row `at`; of an even period both ends count half.
double CenteredMean(absl::Span<const double> values, size_t at, size_t period) {
  const size_t half = period / 2;
  double sum = 0;
  for (size_t i = at - half; i <= at + half; ++i) sum += values[i];
  if (period % 2 == 0) sum -= 0.5 * (values[at - half] + values[at + half]);
  return sum / static_cast<double>(period);
}

}  // namespace

std::vector<double> WithoutGaps(absl::Span<const double> values) {
  std::vector<double> filled(values.begin(), values.end());
  size_t known = values.size();  // the last known row
  for (size_t i = 0; i <= values.size(); ++i) {
    const bool end = i == values.size();
    if (!end && std::isnan(values[i])) continue;
    const size_t begin = known == values.size() ? 0 : known + 1;
    for (size_t gap = begin; gap < i; ++gap) {
      if (begin == 0 && end) {
        filled[gap] = 0;  // nothing is known
      } else if (begin == 0 || end) {
        filled[gap] = end ? values[known] : values[i];
      } else {
        const double share = static_cast<double>(gap - known) / static_cast<double>(i - known);
        filled[gap] = values[known] + share * (values[i] - values[known]);
      }
    }
    known = i;
  }
  return filled;
}

double Autocorrelation(absl::Span<const double> values, size_t lag) {
  const double mean = MeanOf(values);
  double variance = 0, sum = 0;
  for (const double value : values) variance += (value - mean) * (value - mean);
  for (size_t i = lag; i < values.size(); ++i) sum += (values[i] - mean) * (values[i - lag] - mean);
  return variance > 0 ? sum / variance : 0;
}

bool IsSeasonal(absl::Span<const double> values, size_t period) {
  if (period < 2 || values.size() < 2 * period) return false;
  const double mean = MeanOf(values);
  double variance = 0;
  for (const double value : values) variance += (value - mean) * (value - mean);
  if (!(variance > 0)) return false;
  double squares = 0, correlation = 0;
  for (size_t lag = 1; lag <= period; ++lag) {
    double sum = 0;
    for (size_t i = lag; i < values.size(); ++i)
      sum += (values[i] - mean) * (values[i - lag] - mean);
    correlation = sum / variance;
    if (lag < period) squares += correlation * correlation;
  }
  const double deviation = std::sqrt((1 + 2 * squares) / static_cast<double>(values.size()));
  return std::fabs(correlation) > kSignificant * deviation;
}

std::vector<double> SeasonOf(absl::Span<const double> values, size_t period, SeasonKind kind) {
  const bool times = kind == SeasonKind::kMultiplicative;
  std::vector<double> indices(period);
  std::vector<size_t> counts(period);
  const size_t half = period / 2;
  for (size_t at = half; at + half < values.size(); ++at) {
    const double trend = CenteredMean(values, at, period);
    indices[at % period] += times ? values[at] / trend : values[at] - trend;
    ++counts[at % period];
  }
  for (size_t i = 0; i < period; ++i) {
    indices[i] = counts[i] == 0 ? (times ? 1 : 0) : indices[i] / static_cast<double>(counts[i]);
  }
  const double mean = MeanOf(indices);
  for (double& index : indices) index = times ? index / mean : index - mean;
  return indices;
}

}  // namespace traind
