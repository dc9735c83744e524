#include "worker/series/local_forecast.h"

#include <absl/types/span.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "worker/series/exponential_smoothing.h"
#include "worker/series/theta.h"

namespace traind {
namespace {

// Older values tell little, and fitting costs time.
constexpr size_t kMostRows = 1000;
constexpr size_t kMostSeasons = 5;  // of a long season

std::unique_ptr<SeriesModel> FitModel(LocalModel kind, absl::Span<const double> values,
                                      int64_t period) {
  const auto season = static_cast<size_t>(period);
  const size_t most = std::max(kMostRows, kMostSeasons * season);
  return kind == LocalModel::kEts ? ExponentialSmoothing::FitBest(values, season, most)
                                  : ThetaModel::Fit(values, season, most);
}

}  // namespace

absl::string_view LocalModelName(LocalModel kind) {
  return kind == LocalModel::kEts ? "ets" : "theta";
}

std::optional<LocalModel> LocalModelByName(absl::string_view name) {
  for (const LocalModel kind : {LocalModel::kEts, LocalModel::kTheta}) {
    if (name == LocalModelName(kind)) return kind;
  }
  return std::nullopt;
}

LocalForecast::LocalForecast(LocalModel kind, const std::vector<double>& values, int64_t fitted,
                             int64_t period)
    : values_(values), seen_(std::max<int64_t>(fitted, 0)) {
  const auto first = absl::MakeConstSpan(values).subspan(0, static_cast<size_t>(seen_));
  model_ = FitModel(kind, first, period);
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const double value : first) {
    if (std::isnan(value)) continue;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  least_ = least - (most - least);
  most_ = most + (most - least);
}

void LocalForecast::Forecast(int64_t place, int64_t steps, float& out) {
  if (model_ == nullptr) return;
  while (seen_ <= place - steps) model_->Append(values_[static_cast<size_t>(seen_++)]);
  const double value = model_->Forecast(place - seen_ + 1);
  if (std::isfinite(value)) out = static_cast<float>(std::clamp(value, least_, most_));
}

}  // namespace traind
