// What a regression may learn in place of its target: the logarithm, or the power of Yeo and
// Johnson, "A new family of power transformations to improve normality or symmetry" (Biometrika
// 2000), which goes on from Box and Cox, "An analysis of transformations" (1964), to values below
// 0. And the way back: a model that is right on the average of transformed values answers with
// something like a median. Smearing makes a mean of it (Duan, "Smearing estimate: a nonparametric
// retransformation method", 1983).
//
// Threads: all functions are safe.
#pragma once

#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <optional>
#include <vector>

#include "common/metrics/metrics.h"

namespace traind {

enum class TransformKind { kNone, kLog, kYeoJohnson };
absl::string_view TransformName(TransformKind kind);
// By the name that train.target_transform has.
std::optional<TransformKind> ParseTransform(absl::string_view name);

// That of one target, as a fold's training rows fit it.
struct TargetTransform {
  TransformKind kind = TransformKind::kNone;
  // kYeoJohnson: of (value - center) / unit, so that neither a huge nor a tiny unit matters.
  double lambda = 1, center = 0, unit = 1;
  // Transformed values beyond these become them before they are inverted. They belong to values as
  // far beyond the training rows' as those lie apart, so that no answer overflows.
  double least = 0, most = 0;
};

// values: of the training rows; those that are missing (NaN) do not count. lambda has the greatest
// likelihood of normal values. Of values that do not vary nothing is changed but their place.
// REQUIRES: kLog: all are above 0.
TargetTransform FitTransform(TransformKind kind, absl::Span<const float> values);
// NaN of what is missing, and of what the transform does not take.
double Transformed(const TargetTransform& transform, double value);
// NaN where the value is not finite: the model has diverged.
double Inverted(const TargetTransform& transform, double transformed);
// Whether the numbers are such as FitTransform() makes.
bool IsSound(const TargetTransform& transform);

// For each target some residuals of transformed values, which stand for all: their number is that
// of groups of like size, and each gives its group's mean at the median answer. None: answers are
// inverted alone.
using Smearing = std::vector<std::vector<double>>;

// Whether the metric wants means as answers, which smearing makes; others want medians.
bool WantsMeans(const Metric& metric);
// answers: [rows, targets], transformed, for rows that the model has not learnt from; targets: of
// these rows, in their own unit, NaN: missing.
Smearing FitSmearing(absl::Span<const TargetTransform> transforms, absl::Span<const float> answers,
                     absl::Span<const float> targets);
// Turns a model's answers, [rows, targets], into the targets' own unit. No transforms: they are.
void ToOwnUnit(absl::Span<const TargetTransform> transforms, const Smearing& smearing,
               absl::Span<float> answers);

}  // namespace traind
