// The targets of a series that are known at the time when a row is predicted.
#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <vector>

namespace traind {

// The targets of one series, row after row. Missing targets are NaN.
// Threads: confined to one.
class KnownTargets {
 public:
  // When a row is predicted, the targets of the row `horizon` (>= 1) before it, and of
  // earlier rows, are known.
  KnownTargets(int64_t horizon, size_t targets);

  // Appends the targets of the next row, [targets].
  void Append(absl::Span<const float> targets);
  // Returns [targets]: the last value of each target at or before row - horizon,
  // or NaN if there is none.
  // REQUIRES: the rows up to row - horizon were appended. Valid until the next Append().
  absl::Span<const float> Before(int64_t row) const;

 private:
  const int64_t horizon_;
  const std::vector<float> none_;  // [targets], NaN
  std::vector<float> last_;        // [rows, targets], carried forward
};

}  // namespace traind
