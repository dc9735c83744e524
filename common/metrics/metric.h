// The parts of a metric. Each file of this folder that is named after a metric defines it, and
// registry.inc lists it. Nothing else in the house knows a metric by its name.
#pragma once

#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace traind {

// The score where a metric is not defined on the rows at hand.
inline constexpr double kNoScore = std::numeric_limits<double>::quiet_NaN();

// Rows of a classification, each with a class as its label.
struct ClassRows {
  std::vector<const float*> probabilities;  // [n] of [classes]
  std::vector<int32_t> labels;              // [n], in 0..classes-1
  int classes = 0;

  size_t size() const { return labels.size(); }
  // The most probable class; the first of equal ones.
  int32_t Guess(size_t row) const {
    const float* const p = probabilities[row];
    return static_cast<int32_t>(std::max_element(p, p + classes) - p);
  }
};

// Voxels of two masks: of both, of the answer, of the wanted one.
using MaskFunction = double (*)(int64_t both, int64_t predicted, int64_t wanted);

// The property of an answer that is tuned on the out-of-fold rows, for the metric's sake.
enum class Tuning {
  kNone,
  kTemperature,  // how sure the probabilities are
  kThreshold,    // of two classes, the probability from which on a row is of the second
};

// Constant data. Exactly one of its functions is set, and says which tasks the metric suits.
struct MetricKind {
  absl::string_view name;
  bool higher_is_better = true;
  bool is_default = false;  // of the tasks that it suits, where the spec names no metric
  // Classification. Called with any number of rows, none included.
  double (*of_classes)(const ClassRows& rows) = nullptr;
  // Regression and forecasting. Called with at least one row; no target is NaN.
  double (*of_values)(absl::Span<const double> predicted,
                      absl::Span<const double> targets) = nullptr;
  // Segmentation: the score of one volume.
  MaskFunction of_masks = nullptr;
  Tuning tuning = Tuning::kNone;
  // As of_values, of a metric of quantiles, which has a level between 0 and 1.
  double (*of_level)(absl::Span<const double> predicted, absl::Span<const double> targets,
                     double level) = nullptr;
  double level = 0.5;

  bool scores_values() const { return of_values != nullptr || of_level != nullptr; }
  // REQUIRES: scores_values().
  double OfValues(absl::Span<const double> predicted, absl::Span<const double> targets) const {
    return of_level != nullptr ? of_level(predicted, targets, level)
                               : of_values(predicted, targets);
  }
};

}  // namespace traind
