// Scores many predictions of the same rows.
#pragma once

#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/metrics/metrics.h"

namespace traind {

// Gives the scores that Score (metrics.h) gives, without setting the rows up for each.
// Threads: confined to one.
class RowScorer {
 public:
  // Scores a classification. labels: [n] in 0..classes-1; others are left out.
  RowScorer(Metric metric, size_t classes, absl::Span<const int32_t> labels);
  // Scores numbers. targets: [n, outputs] row-major; those that are NaN are left out.
  RowScorer(Metric metric, size_t outputs, absl::Span<const float> targets);
  RowScorer(const RowScorer&) = delete;
  RowScorer& operator=(const RowScorer&) = delete;

  // The predictions to score, [n, classes or outputs] row-major. The caller fills them in.
  absl::Span<float> values() { return absl::MakeSpan(values_); }
  // Returns the score of values(); NaN where the metric is not defined on the rows.
  double Score();

 private:
  // The rows of one output that have a target.
  struct Output {
    std::vector<size_t> places;  // in values_
    std::vector<double> targets, predicted;
  };
  double ScoreOf(Output& output);

  const Metric metric_;
  std::vector<float> values_;
  ClassRows rows_;               // of a classification; they point into values_
  std::vector<Output> outputs_;  // of numbers
};

}  // namespace traind
