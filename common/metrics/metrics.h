// The metrics that a Job can be judged by, as scikit-learn defines them.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>

namespace traind {

enum class Metric { kAccuracy, kLogLoss, kAuc, kF1, kRmse, kMae, kR2, kSmape, kDice, kIou };

// InvalidArgument lists the known names: accuracy, logloss, auc, f1 (macro for
// more than two classes, else of the second class), rmse, mae, r2, smape (in %,
// 0-200), dice, iou.
absl::StatusOr<Metric> MetricByName(absl::string_view name);
absl::string_view MetricName(Metric metric);
bool HigherIsBetter(Metric metric);
bool IsClassification(Metric metric);
// Of masks. What is predicted of a row is then the score of its mask
// (common/data/volume/overlap.h), and Score is the mean over the rows.
bool IsSegmentation(Metric metric);
// true: a is strictly better than b. NaN is worse than anything.
bool Better(Metric metric, double a, double b);

// probabilities: float32 [n, classes] row-major; labels: [n] in 0..classes-1
// (others are left out). NaN where the metric is not defined on these rows.
double Score(Metric metric, absl::Span<const float> probabilities, int classes,
             absl::Span<const int32_t> labels);
// REQUIRES: not IsClassification(metric). Rows whose target is NaN are left out.
double Score(Metric metric, absl::Span<const float> predicted, absl::Span<const float> target);
// Of several targets: the mean of each one's score, as scikit-learn's
// multioutput='uniform_average'. predicted, targets: [n, outputs] row-major.
double Score(Metric metric, absl::Span<const float> predicted, absl::Span<const float> targets,
             size_t outputs);

}  // namespace traind
