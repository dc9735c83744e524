// How good predictions of a fold's validation rows are.
#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <vector>

#include "common/metrics/metrics.h"
#include "worker/data/target_transform.h"
#include "worker/train/fold_data.h"

namespace traind {

struct Evaluation {
  double metric = 0;   // the Job's
  double loss = 0;     // in the training loss's unit
  bool finite = true;  // false: some prediction is NaN or infinite
};

// Threads: immutable.
class Evaluator {
 public:
  Evaluator(const FoldData& data, Metric metric);

  // outputs: [validation rows, C], as Learner::Predict makes them.
  Evaluation Evaluate(absl::Span<const float> outputs) const;
  // What makes means of a model's transformed answers, [validation rows, C]; none where the metric
  // wants no means.
  Smearing SmearingOf(absl::Span<const TargetTransform> transforms,
                      absl::Span<const float> answers) const;

 private:
  double Loss(absl::Span<const float> outputs) const;

  const Metric metric_;
  const int outputs_;
  std::vector<double> target_scale_;  // [targets]
  std::vector<int32_t> classes_;      // of the validation rows
  std::vector<float> values_;         // [rows, C]
};

}  // namespace traind
