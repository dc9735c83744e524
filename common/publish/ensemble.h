// Combines the predictions of several models.
#pragma once

#include <absl/types/span.h>

#include <cstddef>
#include <string>
#include <vector>

#include "common/metrics/metrics.h"

namespace traind {

enum class EnsembleKind { kMean, kWeighted, kGreedy };
std::string EnsembleName(EnsembleKind kind);  // mean, weighted, greedy
// Returns kMean for an unknown name.
EnsembleKind EnsembleByName(const std::string& name);

// Sets out[i] to the sum over k of weights[k] * parts[k][i], added up in float64 in the order of
// the parts; with equal weights this is the plain mean. REQUIRES: parts and out have the same size;
// weights sum to 1.
void Blend(absl::Span<const absl::Span<const float>> parts, absl::Span<const double> weights,
           absl::Span<float> out);

// Scales weights so that they sum to 1. Weights that already do, up to rounding, are not changed,
// so that equal models give equal bytes.
void ScaleToOne(std::vector<double>& weights);

// Returns weights that sum to 1, each proportional to 1 / error. The error is the score itself for
// metrics to be minimised, else its distance from the best possible score. A score that is not
// finite counts as the worst of the others; no weight is more than 10 times another.
std::vector<double> WeightsByScore(Metric metric, absl::Span<const double> scores);

}  // namespace traind
