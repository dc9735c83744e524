#include "common/publish/quantiles.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace traind {
namespace {

constexpr size_t kMostGroups = 10, kRowsOfGroup = 100;

// An answer and the error of it.
using AnswerError = std::pair<double, double>;

double ErrorAt(double level, absl::Span<const double> sorted) {
  const double place = static_cast<double>(sorted.size() + 1) * level;
  // Rounded, so that 0.9 x 10 is 9.
  const double rank = level < 0.5 ? std::floor(place + 1e-9) : std::ceil(place - 1e-9);
  return sorted[static_cast<size_t>(std::clamp(rank, 1.0, static_cast<double>(sorted.size())) - 1)];
}

void AddGroup(absl::Span<const double> levels, absl::Span<const AnswerError> rows,
              TargetOffsets& to) {
  std::vector<double> errors;
  for (const AnswerError& row : rows) errors.push_back(row.second);
  std::sort(errors.begin(), errors.end());
  to.at.push_back(rows[rows.size() / 2].first);
  for (const double level : levels) to.offsets.push_back(ErrorAt(level, errors));
}

TargetOffsets OffsetsOf(absl::Span<const double> levels, std::vector<AnswerError> rows) {
  TargetOffsets offsets;
  std::sort(rows.begin(), rows.end());
  const size_t groups = std::clamp<size_t>(rows.size() / kRowsOfGroup, 1, kMostGroups);
  size_t begin = 0;
  for (size_t group = 1; group <= groups && begin < rows.size(); ++group) {
    size_t end = std::max(begin + 1, rows.size() * group / groups);
    // Rows of the same answer stay together.
    while (end < rows.size() && rows[end].first == rows[end - 1].first) ++end;
    AddGroup(levels, absl::MakeConstSpan(rows).subspan(begin, end - begin), offsets);
    begin = end;
  }
  return offsets;
}

}  // namespace

Quantiles QuantilesOf(std::vector<double> levels, size_t targets, absl::Span<const float> answers,
                      absl::Span<const float> values) {
  Quantiles quantiles;
  quantiles.levels = std::move(levels);
  for (size_t k = 0; k < targets; ++k) {
    std::vector<AnswerError> rows;
    bool negative = false;
    for (size_t at = k; at < answers.size(); at += targets) {
      if (!std::isfinite(answers[at]) || !std::isfinite(values[at])) continue;
      rows.emplace_back(answers[at], static_cast<double>(values[at]) - answers[at]);
      negative |= values[at] < 0;
    }
    quantiles.targets.push_back(OffsetsOf(quantiles.levels, std::move(rows)));
    quantiles.targets.back().not_negative = !negative;
  }
  return quantiles;
}

void QuantilesAt(const Quantiles& quantiles, absl::Span<const float> answer,
                 std::vector<double>& out) {
  const size_t levels = quantiles.levels.size();
  out.assign(answer.size() * levels, std::numeric_limits<double>::quiet_NaN());
  for (size_t k = 0; k < std::min(answer.size(), quantiles.targets.size()); ++k) {
    const TargetOffsets& of = quantiles.targets[k];
    if (of.at.empty()) continue;
    const double value = answer[k];
    const size_t above =
        static_cast<size_t>(std::upper_bound(of.at.begin(), of.at.end(), value) - of.at.begin());
    const size_t low = above == 0 ? 0 : above - 1, high = std::min(above, of.at.size() - 1);
    const double gap = of.at[high] - of.at[low];
    const double share = gap > 0 ? (value - of.at[low]) / gap : 0;
    for (size_t q = 0; q < levels; ++q) {
      const double offset =
          (1 - share) * of.offsets[low * levels + q] + share * of.offsets[high * levels + q];
      const double quantile = value + offset;
      out[k * levels + q] = of.not_negative ? std::max(quantile, 0.0) : quantile;
    }
  }
}

}  // namespace traind
