// The metrics that a Job can be judged by, as scikit-learn defines them.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <vector>

#include "common/metrics/metric.h"

namespace traind {

// One of the metrics of registry.inc; the first of them unless another is given.
// Threads: immutable; copies cost nothing.
class Metric {
 public:
  Metric();
  explicit Metric(const MetricKind& kind) : kind_(&kind) {}

  const MetricKind& kind() const { return *kind_; }
  friend bool operator==(Metric a, Metric b) { return a.kind_ == b.kind_; }
  friend bool operator!=(Metric a, Metric b) { return a.kind_ != b.kind_; }

 private:
  const MetricKind* kind_;
};

// In the order of registry.inc.
std::vector<Metric> AllMetrics();
// InvalidArgument lists the known names. The name of a metric at a level is <name>_q<level>, such
// as pinball_q0.9.
absl::StatusOr<Metric> MetricByName(absl::string_view name);
// Whether the metric is one of quantiles, and so has a level, 1/2 unless it is of AtLevel.
bool HasLevel(Metric metric);
// REQUIRES: HasLevel(metric), 0.001 <= level <= 0.999.
Metric AtLevel(Metric metric, double level);
// Those that suit a task.type: classification, regression, forecasting or segmentation.
std::vector<Metric> MetricsFor(absl::string_view task_type);
// The one of them that is taken where the spec names none.
Metric DefaultMetricFor(absl::string_view task_type);

absl::string_view MetricName(Metric metric);
bool HigherIsBetter(Metric metric);
bool IsClassification(Metric metric);
// A metric of masks. What is predicted of a row is then the score of its mask
// (common/data/volume/overlap.h), and Score is the mean over the rows.
bool IsSegmentation(Metric metric);
// Returns whether a is strictly better than b. NaN is worse than anything.
bool Better(Metric metric, double a, double b);

// probabilities: float32 [n, classes] row-major; labels: [n] in 0..classes-1
// (others are left out). NaN where the metric is not defined on these rows.
double Score(Metric metric, absl::Span<const float> probabilities, int classes,
             absl::Span<const int32_t> labels);
// REQUIRES: not IsClassification(metric). Rows whose target is NaN are left out.
double Score(Metric metric, absl::Span<const float> predicted, absl::Span<const float> target);
// Returns the mean of the targets' scores, as scikit-learn's
// multioutput='uniform_average'. predicted, targets: [n, outputs] row-major.
double Score(Metric metric, absl::Span<const float> predicted, absl::Span<const float> targets,
             size_t outputs);

}  // namespace traind
