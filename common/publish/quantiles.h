// Quantiles of a regression's answer, from the errors of its out-of-fold answers.
#pragma once

#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace traind {

// By how much values of one target differ from the answer, as a function of the answer, and in a
// forecast of how far ahead it is. Between two places both are interpolated.
struct TargetOffsets {
  std::vector<double> at;       // answers, ascending
  std::vector<double> offsets;  // [at, levels] row-major, ascending in each row
  bool not_negative = false;    // no known value is negative, so no quantile is
  // Rows ahead, ascending, and how large errors are there beside those of all rows, which the
  // offsets are of. Empty: errors are alike at every step, or it is no forecast.
  std::vector<double> steps = {}, scales = {};

  friend bool operator==(const TargetOffsets& a, const TargetOffsets& b) {
    return a.at == b.at && a.offsets == b.offsets && a.not_negative == b.not_negative &&
           a.steps == b.steps && a.scales == b.scales;
  }
};

struct Quantiles {
  std::vector<double> levels;          // in (0, 1), ascending; empty: none are wanted
  std::vector<TargetOffsets> targets;  // [targets]; empty: nothing is known of errors

  friend bool operator==(const Quantiles& a, const Quantiles& b) {
    return a.levels == b.levels && a.targets == b.targets;
  }
};

// Split conformal prediction (Papadopoulos et al. 2002, Vovk et al. 2005) on out-of-fold errors,
// within up to ten groups of rows with similar answers (Mondrian conformal prediction): errors
// often grow with the answer. A level below 1/2 takes the floor((n + 1) level)-th smallest error of
// a group of n, another one the ceil((n + 1) level)-th. answers, values: [rows, targets]; rows in
// which either is not finite are left out. A target without any row has no places.
// steps: [rows] of a forecast, how many rows ahead each one is; else empty. Errors are then divided
// by the mean error of rows as far ahead, in groups of 100 rows or more.
Quantiles QuantilesOf(std::vector<double> levels, size_t targets, absl::Span<const float> answers,
                      absl::Span<const float> values, absl::Span<const int32_t> steps = {});

// out: [targets, levels], the quantiles of one row's answer; NaN where nothing is known. REQUIRES:
// levels are not empty. answer: [targets]. step: how many rows ahead it is; 0: not known, and as
// far as any row of which errors are known.
void QuantilesAt(const Quantiles& quantiles, absl::Span<const float> answer, int step,
                 std::vector<double>& out);

// The mean pinball loss of each level, and the share of values at or below its quantiles.
struct QuantileScores {
  std::vector<double> pinball, below;  // [levels]; empty: no row counts

  friend bool operator==(const QuantileScores& a, const QuantileScores& b) {
    return a.pinball == b.pinball && a.below == b.below;
  }
};
// answers, values: [rows, targets]; steps: as above. Where either is not finite, nothing counts.
QuantileScores ScoreQuantiles(const Quantiles& quantiles, absl::Span<const float> answers,
                              absl::Span<const float> values, absl::Span<const int32_t> steps);

}  // namespace traind
