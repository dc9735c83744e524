// The season of a series by classical decomposition.
#pragma once

#include <absl/types/span.h>

#include <cstddef>
#include <vector>

namespace traind {

enum class SeasonKind {
  kAdditive,        // indices sum to 0
  kMultiplicative,  // indices have the mean 1; for positive values
};

// Missing values (NaN) are interpolated linearly; those at an end become the nearest value.
std::vector<double> WithoutGaps(absl::Span<const double> values);

// REQUIRES: no value is missing; lag < size. 0 where all values are the same.
double Autocorrelation(absl::Span<const double> values, size_t lag);

// Returns whether the autocorrelation at the lag `period` is significant at 90 %, by the test that
// the Theta method takes. A series of less than two seasons is not seasonal.
// REQUIRES: no value is missing.
bool IsSeasonal(absl::Span<const double> values, size_t period);

// Returns the seasonal indices, [period], the first of values[0]: means of what the centered moving
// average of one season leaves.
// REQUIRES: no value is missing; values has two seasons or more, and is positive for
// kMultiplicative.
std::vector<double> SeasonOf(absl::Span<const double> values, size_t period, SeasonKind kind);

}  // namespace traind
