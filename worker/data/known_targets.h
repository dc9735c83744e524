// What is known of a series' targets by the time that a row is predicted.
#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <vector>

namespace traind {

// The targets of one series, row after row; some are missing (NaN).
// Threads: none of its own.
class KnownTargets {
 public:
  // Known of a row are the targets of the row `horizon` (>= 1) before it, and of earlier ones.
  KnownTargets(int64_t horizon, size_t targets);

  // The next row's, [targets].
  void Append(absl::Span<const float> targets);
  // [targets]: the last value of each at or before row - horizon; NaN: there is none.
  // REQUIRES: the rows up to row - horizon were appended. Valid until the next Append.
  absl::Span<const float> Before(int64_t row) const;

 private:
  const int64_t horizon_;
  const std::vector<float> none_;  // [targets], NaN
  std::vector<float> last_;        // [rows, targets], carried forward
};

}  // namespace traind
