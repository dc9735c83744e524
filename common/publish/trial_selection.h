// The weights of several trials and the floor in one answer.
#pragma once

#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/metrics/metrics.h"

namespace traind {

// A fold's rows, and what is predicted of them out of fold. Arrays are row-major, [rows, C].
struct FoldOfTrials {
  std::vector<int32_t> labels;  // [rows]: of a classification
  std::vector<float> targets;   // [rows, C]: of numbers
  // [trial]: [rows, C]; empty where the trial lacks the fold. At least one has it.
  std::vector<absl::Span<const float>> trials;
  absl::Span<const float> floor;  // [rows, C]; empty: there is no floor
  // The trial that answers where none of those with a weight has the fold.
  size_t fallback = 0;

  size_t rows(size_t columns) const {
    return labels.empty() ? targets.size() / columns : labels.size();
  }
};

// At least one trial has a weight; all weights sum to 1.
struct TrialWeights {
  std::vector<double> trials;
  double floor = 0;
};

// Chooses the weights by ensemble selection with replacement (Caruana et al. 2004). A fold's answer
// is the mean of its trials by their weights scaled to sum to 1, then the floor by its own.
//
// Trials compete on all rows; one that lacks a fold changes nothing there. A trial with less than
// half of the folds waits, and the first choice is among those with the most folds. On few rows the
// weights are chosen once without each part of the folds, and averaged. On the rows that each
// choice has not seen, it must then win against the trial `plain` with the floor, the best single
// trial, and the mean of all; otherwise the best of these is taken. Accuracy on few rows is luck to
// a large part: there accuracy - log loss chooses, and its choice is taken (decision 19).
//
// Deterministic. REQUIRES: every fold has the same number of trials.
TrialWeights SelectTrials(Metric metric, size_t columns, absl::Span<const FoldOfTrials> folds,
                          size_t plain);

}  // namespace traind
