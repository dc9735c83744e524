// How several models' predictions become one.
#pragma once

#include <absl/types/span.h>

#include <cstddef>
#include <string>
#include <vector>

#include "common/metrics/metrics.h"

namespace traind {

enum class EnsembleKind { kMean, kWeighted, kGreedy };
std::string EnsembleName(EnsembleKind kind);  // mean, weighted, greedy
// kMean where the name is none of them.
EnsembleKind EnsembleByName(const std::string& name);

// out[i] = sum over k of weights[k] * parts[k][i], added up in float64 in the order of the
// parts; the plain mean where all weights are alike. REQUIRES: parts and out are of one
// size; weights sum to 1.
void Blend(absl::Span<const absl::Span<const float>> parts, absl::Span<const double> weights,
           absl::Span<float> out);

// Scales weights so that they sum to 1. Those that do, but for rounding, stay as they are, so
// that equal models give equal bytes.
void ScaleToOne(std::vector<double>& weights);

// Weights that sum to 1, each proportional to 1 / error, where the error is the score
// itself for metrics to be minimised, else its distance from the best possible score. A score
// that is not finite counts as the worst of the others; no weight is more than 10 times
// another.
std::vector<double> WeightsByScore(Metric metric, absl::Span<const double> scores);

}  // namespace traind
