#include "common/metrics/row_scorer.h"

#include <cmath>

namespace traind {

RowScorer::RowScorer(Metric metric, size_t classes, absl::Span<const int32_t> labels)
    : metric_(metric), values_(labels.size() * classes) {
  rows_.classes = static_cast<int>(classes);
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= rows_.classes) continue;
    rows_.probabilities.push_back(values_.data() + i * classes);
    rows_.labels.push_back(labels[i]);
  }
}

RowScorer::RowScorer(Metric metric, size_t outputs, absl::Span<const float> targets)
    : metric_(metric), values_(targets.size()), outputs_(outputs) {
  for (size_t i = 0; i < targets.size(); ++i) {
    if (std::isnan(targets[i])) continue;
    Output& output = outputs_[i % outputs];
    output.places.push_back(i);
    output.targets.push_back(targets[i]);
  }
  for (Output& output : outputs_) output.predicted.resize(output.places.size());
}

double RowScorer::ScoreOf(Output& output) {
  if (output.places.empty()) return kNoScore;
  double sum = 0;
  for (size_t i = 0; i < output.places.size(); ++i) {
    output.predicted[i] = values_[output.places[i]];
    sum += output.predicted[i];
  }
  // The prediction of a volume is the score of its mask (metrics.h).
  if (IsSegmentation(metric_)) return sum / static_cast<double>(output.places.size());
  return metric_.kind().OfValues(output.predicted, output.targets);
}

double RowScorer::Score() {
  if (IsClassification(metric_)) return metric_.kind().of_classes(rows_);
  if (IsSegmentation(metric_)) return ScoreOf(outputs_[0]);
  double sum = 0;
  for (Output& output : outputs_) sum += ScoreOf(output);
  return sum / static_cast<double>(outputs_.size());
}

}  // namespace traind
