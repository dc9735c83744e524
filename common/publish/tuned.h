// Adjusts an answer of probabilities, for the sake of the Job's metric.
#pragma once

#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/metrics/metrics.h"

namespace traind {

// How much a trial counts in a second layer (second_layer.h).
struct TrialPower {
  int trial = 0;  // -1: the floor
  double exponent = 0;

  friend bool operator==(const TrialPower& a, const TrialPower& b) {
    return a.trial == b.trial && a.exponent == b.exponent;
  }
};

struct Tuned {
  // Probabilities are taken to the power 1 / temperature and scaled to sum to 1.
  double temperature = 1;
  // With two classes, the second one is the label where its probability is at least this; unset:
  // the more probable one is.
  std::optional<double> threshold;
  // Trials are joined by a second layer in place of their weights; the temperature is 1 then.
  // Empty: there is none.
  std::vector<TrialPower> powers = {};
  // Of masks: the classes, from 0 on, of which the largest component alone is kept, ascending.
  std::vector<int> largest = {};

  friend bool operator==(const Tuned& a, const Tuned& b) {
    return a.temperature == b.temperature && a.threshold == b.threshold && a.powers == b.powers &&
           a.largest == b.largest;
  }
  friend bool operator!=(const Tuned& a, const Tuned& b) { return !(a == b); }
};

// Applies the temperature. probabilities: [rows, classes] row-major.
void ApplyTemperature(double temperature, size_t classes, absl::Span<float> probabilities);

// Returns the class that is the label of a row. probabilities: [classes].
size_t LabelOf(absl::Span<const float> probabilities, const std::optional<double>& threshold);

// Returns the score of the answer as it is after adjusting. labels: [rows].
double TunedScore(Metric metric, size_t classes, const Tuned& tuned,
                  absl::Span<const float> probabilities, absl::Span<const int32_t> labels);

// A fold's out-of-fold answer.
struct FoldToTune {
  std::vector<float> probabilities;  // [rows, classes]
  std::vector<int32_t> labels;       // [rows]
};

// What the mean score of masks gains by keeping the largest components of these classes alone.
// values: [rows, columns], those of AnswerScore (common/data/volume/answer_score.h).
double GainOf(absl::Span<const int> classes, size_t columns, absl::Span<const float> values);

// The classes of which the largest component alone is kept: those whose gain is above 0, as in
// nnU-Net's choice of postprocessing. values: as for GainOf.
std::vector<int> ChooseComponents(size_t columns, absl::Span<const float> values);

// Chooses what the metric can gain from: a temperature (from 500 rows on, of two classes from 3000
// on), or a threshold (from 200 rows on). It must gain on the rows of each fold as chosen on the
// rows of the others, so nothing is adjusted for a single fold. Deterministic.
Tuned Tune(Metric metric, size_t classes, absl::Span<const FoldToTune> folds);

}  // namespace traind
