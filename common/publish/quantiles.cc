#include "common/publish/quantiles.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace traind {
namespace {

constexpr size_t kMostGroups = 10, kRowsOfGroup = 100;
constexpr size_t kMostStepGroups = 50;
// Steps without errors, as of a series that does not change, do not divide by 0.
constexpr double kLeastScale = 0.01;

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

void AddGroups(absl::Span<const double> levels, std::vector<AnswerError> rows,
               TargetOffsets& offsets) {
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
}

// How large errors are at each step beside all of them.
void FindScales(std::vector<std::pair<double, double>> errors_by_step, TargetOffsets& to) {
  std::sort(errors_by_step.begin(), errors_by_step.end());
  const size_t rows = errors_by_step.size();
  const size_t groups = std::min(rows / kRowsOfGroup, kMostStepGroups);
  if (groups < 2 || errors_by_step.front().first == errors_by_step.back().first) return;
  double of_all = 0;
  for (const auto& [step, error] : errors_by_step) of_all += std::abs(error);
  of_all /= static_cast<double>(rows);
  if (of_all <= 0) return;
  size_t begin = 0;
  for (size_t group = 1; group <= groups && begin < rows; ++group) {
    size_t end = std::max(begin + 1, rows * group / groups);
    // Rows of the same step stay together.
    while (end < rows && errors_by_step[end].first == errors_by_step[end - 1].first) ++end;
    double steps = 0, errors = 0;
    for (size_t i = begin; i < end; ++i) {
      steps += errors_by_step[i].first;
      errors += std::abs(errors_by_step[i].second);
    }
    const auto count = static_cast<double>(end - begin);
    to.steps.push_back(steps / count);
    to.scales.push_back(std::max(errors / count / of_all, kLeastScale));
    begin = end;
  }
}

// The places around a value on an ascending line, and the share of the upper one.
struct Between {
  size_t low = 0, high = 0;
  double share = 0;
};
Between PlacesAround(const std::vector<double>& line, double value) {
  const auto above =
      static_cast<size_t>(std::upper_bound(line.begin(), line.end(), value) - line.begin());
  Between between{above == 0 ? 0 : above - 1, std::min(above, line.size() - 1), 0};
  const double gap = line[between.high] - line[between.low];
  if (gap > 0) between.share = (value - line[between.low]) / gap;
  return between;
}

// step: 0 where it is not known.
double ScaleAt(const TargetOffsets& of, int step) {
  if (of.steps.empty()) return 1;
  if (step <= 0) return of.scales.back();
  const Between place = PlacesAround(of.steps, step);
  return (1 - place.share) * of.scales[place.low] + place.share * of.scales[place.high];
}

// steps: [rows], or empty.
TargetOffsets OffsetsOf(absl::Span<const double> levels, std::vector<AnswerError> rows,
                        absl::Span<const int32_t> steps) {
  TargetOffsets offsets;
  if (!steps.empty()) {
    std::vector<std::pair<double, double>> errors;
    for (size_t i = 0; i < rows.size(); ++i) errors.emplace_back(steps[i], rows[i].second);
    FindScales(std::move(errors), offsets);
    for (size_t i = 0; i < rows.size(); ++i) rows[i].second /= ScaleAt(offsets, steps[i]);
  }
  AddGroups(levels, std::move(rows), offsets);
  return offsets;
}

}  // namespace

Quantiles QuantilesOf(std::vector<double> levels, size_t targets, absl::Span<const float> answers,
                      absl::Span<const float> values, absl::Span<const int32_t> steps) {
  Quantiles quantiles;
  quantiles.levels = std::move(levels);
  for (size_t k = 0; k < targets; ++k) {
    std::vector<AnswerError> rows;
    std::vector<int32_t> steps_of_rows;
    bool negative = false;
    for (size_t at = k; at < answers.size(); at += targets) {
      if (!std::isfinite(answers[at]) || !std::isfinite(values[at])) continue;
      rows.emplace_back(answers[at], static_cast<double>(values[at]) - answers[at]);
      if (!steps.empty()) steps_of_rows.push_back(steps[at / targets]);
      negative |= values[at] < 0;
    }
    quantiles.targets.push_back(OffsetsOf(quantiles.levels, std::move(rows), steps_of_rows));
    quantiles.targets.back().not_negative = !negative;
  }
  return quantiles;
}

void QuantilesAt(const Quantiles& quantiles, absl::Span<const float> answer, int step,
                 std::vector<double>& out) {
  const size_t levels = quantiles.levels.size();
  out.assign(answer.size() * levels, std::numeric_limits<double>::quiet_NaN());
  for (size_t k = 0; k < std::min(answer.size(), quantiles.targets.size()); ++k) {
    const TargetOffsets& of = quantiles.targets[k];
    if (of.at.empty()) continue;
    const double value = answer[k], scale = ScaleAt(of, step);
    const Between place = PlacesAround(of.at, value);
    for (size_t q = 0; q < levels; ++q) {
      const double offset = (1 - place.share) * of.offsets[place.low * levels + q] +
                            place.share * of.offsets[place.high * levels + q];
      const double quantile = value + scale * offset;
      out[k * levels + q] = of.not_negative ? std::max(quantile, 0.0) : quantile;
    }
  }
}

QuantileScores ScoreQuantiles(const Quantiles& quantiles, absl::Span<const float> answers,
                              absl::Span<const float> values, absl::Span<const int32_t> steps) {
  const size_t levels = quantiles.levels.size(), targets = quantiles.targets.size();
  QuantileScores scores;
  scores.pinball.assign(levels, 0);
  scores.below.assign(levels, 0);
  std::vector<double> at;
  double count = 0;
  for (size_t row = 0; targets > 0 && (row + 1) * targets <= answers.size(); ++row) {
    QuantilesAt(quantiles, answers.subspan(row * targets, targets), steps.empty() ? 0 : steps[row],
                at);
    for (size_t k = 0; k < targets; ++k) {
      const double value = values[row * targets + k];
      if (!std::isfinite(value) || !std::isfinite(at[k * levels])) continue;
      ++count;
      for (size_t q = 0; q < levels; ++q) {
        const double over = value - at[k * levels + q], level = quantiles.levels[q];
        scores.pinball[q] += std::max(level * over, (level - 1) * over);
        scores.below[q] += over <= 0;
      }
    }
  }
  if (count == 0) return {};
  for (size_t q = 0; q < levels; ++q) {
    scores.pinball[q] /= count;
    scores.below[q] /= count;
  }
  return scores;
}

}  // namespace traind
