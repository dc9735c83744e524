#include "common/publish/ensemble.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace traind {
namespace {

constexpr double kMostRatio = 10;
constexpr double kRounding = 1e-9;

double ErrorOf(Metric metric, double score) { return HigherIsBetter(metric) ? 1 - score : score; }

}  // namespace

std::string EnsembleName(EnsembleKind kind) {
  switch (kind) {
    case EnsembleKind::kMean:
      break;
    case EnsembleKind::kWeighted:
      return "weighted";
    case EnsembleKind::kGreedy:
      return "greedy";
  }
  return "mean";
}

EnsembleKind EnsembleByName(const std::string& name) {
  for (const EnsembleKind kind : {EnsembleKind::kWeighted, EnsembleKind::kGreedy}) {
    if (name == EnsembleName(kind)) return kind;
  }
  return EnsembleKind::kMean;
}

void Blend(absl::Span<const absl::Span<const float>> parts, absl::Span<const double> weights,
           absl::Span<float> out) {
  const bool alike = std::all_of(weights.begin(), weights.end(),
                                 [&](double weight) { return weight == weights[0]; });
  std::vector<double> sums(out.size());
  for (size_t k = 0; k < parts.size(); ++k) {
    const double weight = alike ? 1 : weights[k];
    for (size_t i = 0; i < out.size(); ++i) sums[i] += weight * parts[k][i];
  }
  const double divisor = alike ? static_cast<double>(parts.size()) : 1;
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(sums[i] / divisor);
}

void ScaleToOne(std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (std::abs(sum - 1) < kRounding) return;
  for (double& weight : weights) weight /= sum;
}

std::vector<double> WeightsByScore(Metric metric, absl::Span<const double> scores) {
  double worst = 0;
  for (const double score : scores) {
    if (std::isfinite(score)) worst = std::max(worst, ErrorOf(metric, score));
  }
  std::vector<double> weights;
  double sum = 0;
  for (const double score : scores) {
    const double error = std::isfinite(score) ? ErrorOf(metric, score) : worst;
    weights.push_back(worst > 0 ? 1 / std::max(error, worst / kMostRatio) : 1);
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace traind
