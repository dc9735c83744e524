#include "common/metrics/metrics.h"

#include <absl/strings/str_cat.h>

#include <cmath>
#include <string>

#include "common/metrics/registry.h"

namespace traind {
namespace {

constexpr const MetricKind* kKinds[] = {
#define METRIC(Name) &k##Name##Metric,
#include "common/metrics/registry.inc"
#undef METRIC
};

bool Suits(const MetricKind& kind, absl::string_view task_type) {
  if (task_type == "classification") return kind.of_classes != nullptr;
  if (task_type == "segmentation") return kind.of_masks != nullptr;
  return kind.of_values != nullptr;
}

// The rows whose label is a class.
ClassRows LabelledRows(absl::Span<const float> probabilities, int classes,
                       absl::Span<const int32_t> labels) {
  ClassRows rows;
  rows.classes = classes;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= classes) continue;
    rows.probabilities.push_back(probabilities.data() + i * static_cast<size_t>(classes));
    rows.labels.push_back(labels[i]);
  }
  return rows;
}

double Mean(absl::Span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

Metric::Metric() : kind_(kKinds[0]) {}

std::vector<Metric> AllMetrics() {
  std::vector<Metric> all;
  for (const MetricKind* kind : kKinds) all.emplace_back(*kind);
  return all;
}

absl::StatusOr<Metric> MetricByName(absl::string_view name) {
  std::string known;
  for (const MetricKind* kind : kKinds) {
    if (kind->name == name) return Metric(*kind);
    absl::StrAppend(&known, known.empty() ? "" : ", ", kind->name);
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown metric '", name, "'; known: ", known));
}

std::vector<Metric> MetricsFor(absl::string_view task_type) {
  std::vector<Metric> fitting;
  for (const MetricKind* kind : kKinds) {
    if (Suits(*kind, task_type)) fitting.emplace_back(*kind);
  }
  return fitting;
}

Metric DefaultMetricFor(absl::string_view task_type) {
  for (const Metric metric : MetricsFor(task_type)) {
    if (metric.kind().is_default) return metric;
  }
  return Metric();
}

absl::string_view MetricName(Metric metric) { return metric.kind().name; }
bool HigherIsBetter(Metric metric) { return metric.kind().higher_is_better; }
bool IsClassification(Metric metric) { return metric.kind().of_classes != nullptr; }
bool IsSegmentation(Metric metric) { return metric.kind().of_masks != nullptr; }

bool Better(Metric metric, double a, double b) {
  if (std::isnan(a)) return false;
  if (std::isnan(b)) return true;
  return HigherIsBetter(metric) ? a > b : a < b;
}

double Score(Metric metric, absl::Span<const float> probabilities, int classes,
             absl::Span<const int32_t> labels) {
  if (!IsClassification(metric)) return kNoScore;
  return metric.kind().of_classes(LabelledRows(probabilities, classes, labels));
}

double Score(Metric metric, absl::Span<const float> predicted, absl::Span<const float> target) {
  std::vector<double> p, t;
  for (size_t i = 0; i < target.size(); ++i) {
    if (std::isnan(target[i])) continue;
    p.push_back(predicted[i]);
    t.push_back(target[i]);
  }
  if (t.empty() || IsClassification(metric)) return kNoScore;
  return IsSegmentation(metric) ? Mean(p) : metric.kind().of_values(p, t);
}

double Score(Metric metric, absl::Span<const float> predicted, absl::Span<const float> targets,
             size_t outputs) {
  if (outputs == 1) return Score(metric, predicted, targets);
  // Of a volume only the first value is a score.
  const size_t scored = IsSegmentation(metric) ? 1 : outputs;
  double sum = 0;
  std::vector<float> p(targets.size() / outputs), t(p.size());
  for (size_t k = 0; k < scored; ++k) {
    for (size_t i = 0; i < t.size(); ++i) {
      p[i] = predicted[i * outputs + k];
      t[i] = targets[i * outputs + k];
    }
    sum += Score(metric, p, t);
  }
  return sum / static_cast<double>(scored);
}

}  // namespace traind
