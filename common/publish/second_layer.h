// A second layer joins the answers of several trials for the log loss: of each fold, the trials'
// probabilities and the floor's are taken to a power of their own, multiplied, and scaled to sum to
// 1. The folds are averaged as always.
#pragma once

#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/metrics/metrics.h"
#include "common/publish/tuned.h"

namespace traind {

// A model, or the floor, as a part of an answer.
struct AnswerPart {
  int fold = 0;   // -1: the floor
  int trial = 0;  // of the floor -1
  double weight = 0;
};

// How the values of all parts become the answer.
// Threads: immutable.
class AnswerJoin {
 public:
  AnswerJoin() = default;
  // The weights sum to 1. No powers: the answer is the mean by the weights (Blend in ensemble.h).
  // Where a fold lacks a trial with a power, the mean of the fold and the floor stands in for it.
  AnswerJoin(std::vector<AnswerPart> parts, std::vector<TrialPower> powers);

  // values: of each part, [rows, outputs]; out: the same size. The order of the parts of different
  // folds does not matter where there are powers.
  void Join(absl::Span<const absl::Span<const float>> values, size_t outputs,
            absl::Span<float> out) const;

 private:
  std::vector<AnswerPart> parts_;
  std::vector<double> weights_;
  std::vector<TrialPower> powers_;
};

// The out-of-fold answers of a fold.
struct FoldToJoin {
  std::vector<AnswerPart> parts;                // the weights sum to 1
  std::vector<absl::Span<const float>> values;  // of each part, [rows, classes]
  std::vector<int32_t> labels;                  // [rows]
};

// Chooses the powers by Newton's method on the log loss, which is convex in them; none is below 0,
// and they shrink towards the weights. Each fold is answered by powers that were chosen on the
// others. If the log loss is not less by 1.5 standard errors and 0.01 % than that of the weights
// with the temperature of `tuned`, nothing is returned; nor for another metric, fewer than 500 rows
// (3000 of two classes), a single fold, less than two trials or more than twelve parts. Otherwise
// returns what all folds choose together. Deterministic.
std::vector<TrialPower> ChoosePowers(Metric metric, size_t classes,
                                     absl::Span<const FoldToJoin> folds, const Tuned& tuned);

}  // namespace traind
