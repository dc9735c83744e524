#include "worker/train/evaluator.h"

#include <algorithm>
#include <cmath>

namespace traind {

Evaluator::Evaluator(const FoldData& data, Metric metric)
    : metric_(metric), outputs_(data.outputs), target_scale_(data.encoder->error_scale()) {
  const bool classification = data.table->schema().target_kind == TargetKind::kClasses;
  for (const int32_t row : data.rows.validation) {
    const size_t i = static_cast<size_t>(row);
    if (classification) {
      classes_.push_back(data.table->TargetClass(Split::kTrain)[i]);
    } else {
      for (size_t k = 0; k < data.table->schema().targets(); ++k) {
        values_.push_back(data.table->TargetValue(Split::kTrain, k)[i]);
      }
      // Of a volume only the first value is a score.
      if (IsSegmentation(metric))
        values_.resize(values_.size() + static_cast<size_t>(data.outputs) - 1);
    }
  }
}

Evaluation Evaluator::Evaluate(absl::Span<const float> outputs) const {
  Evaluation evaluation;
  evaluation.finite =
      std::all_of(outputs.begin(), outputs.end(), [](float v) { return std::isfinite(v); });
  evaluation.metric = IsClassification(metric_)
                          ? Score(metric_, outputs, outputs_, classes_)
                          : Score(metric_, outputs, values_, static_cast<size_t>(outputs_));
  evaluation.loss = IsSegmentation(metric_) ? 1 - evaluation.metric : Loss(outputs);
  return evaluation;
}

Smearing Evaluator::SmearingOf(absl::Span<const TargetTransform> transforms,
                               absl::Span<const float> answers) const {
  return WantsMeans(metric_) ? FitSmearing(transforms, answers, values_) : Smearing();
}

double Evaluator::Loss(absl::Span<const float> outputs) const {
  constexpr double kLeastProbability = 1e-12;
  double sum = 0;
  int64_t rows = 0;
  for (size_t i = 0; i < classes_.size(); ++i) {
    if (classes_[i] < 0) continue;
    const float p = outputs[i * static_cast<size_t>(outputs_) + static_cast<size_t>(classes_[i])];
    sum -= std::log(std::max<double>(p, kLeastProbability));
    ++rows;
  }
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!std::isfinite(values_[i])) continue;
    const double error = (outputs[i] - values_[i]) / target_scale_[i % target_scale_.size()];
    sum += error * error;
    ++rows;
  }
  return rows == 0 ? 0 : sum / static_cast<double>(rows);
}

}  // namespace traind
