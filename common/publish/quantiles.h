// Quantiles of a regression's answer, from the errors of its out-of-fold answers.
#pragma once

#include <absl/types/span.h>

#include <cstddef>
#include <vector>

namespace traind {

// By how much values of one target differ from the answer, as a function of the answer. Between two
// places the offsets are interpolated.
struct TargetOffsets {
  std::vector<double> at;       // answers, ascending
  std::vector<double> offsets;  // [at, levels] row-major, ascending in each row
  bool not_negative = false;    // no known value is negative, so no quantile is

  friend bool operator==(const TargetOffsets& a, const TargetOffsets& b) {
    return a.at == b.at && a.offsets == b.offsets && a.not_negative == b.not_negative;
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
Quantiles QuantilesOf(std::vector<double> levels, size_t targets, absl::Span<const float> answers,
                      absl::Span<const float> values);

// out: [targets, levels], the quantiles of one row's answer; NaN where nothing is known. REQUIRES:
// levels are not empty. answer: [targets].
void QuantilesAt(const Quantiles& quantiles, absl::Span<const float> answer,
                 std::vector<double>& out);

}  // namespace traind
