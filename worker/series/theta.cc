#include "worker/series/theta.h"

#include <algorithm>
#include <cmath>

namespace traind {
namespace {

constexpr size_t kLeastKnown = 4;

double SlopeOf(absl::Span<const double> values) {
  const double center = static_cast<double>(values.size() - 1) / 2;
  double products = 0, squares = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double from = static_cast<double>(i) - center;
    products += from * values[i];
    squares += from * from;
  }
  return products / squares;
}

}  // namespace

std::unique_ptr<SeriesModel> ThetaModel::Fit(absl::Span<const double> values, size_t period,
                                             size_t most_rows) {
  if (values.size() > most_rows) values = values.subspan(values.size() - most_rows);
  const auto missing = static_cast<size_t>(
      std::count_if(values.begin(), values.end(), [](double x) { return std::isnan(x); }));
  if (values.size() < missing + kLeastKnown) return nullptr;
  const std::vector<double> whole = WithoutGaps(values);
  const bool positive = *std::min_element(whole.begin(), whole.end()) > 0;
  const SeasonKind kind = positive ? SeasonKind::kMultiplicative : SeasonKind::kAdditive;
  std::vector<double> season = {positive ? 1.0 : 0.0};
  if (IsSeasonal(whole, period)) season = SeasonOf(whole, period, kind);
  std::vector<double> adjusted(values.begin(), values.end());
  for (size_t i = 0; i < adjusted.size(); ++i) {
    const double index = season[i % season.size()];
    adjusted[i] = positive ? adjusted[i] / index : adjusted[i] - index;
  }
  const double slope = SlopeOf(WithoutGaps(adjusted));
  std::unique_ptr<ThetaModel> model(new ThetaModel(
      kind, std::move(season), slope, ExponentialSmoothing::Fit(adjusted, SmoothingForm())));
  model->rows_ = values.size();
  return model;
}

void ThetaModel::Append(double value) {
  const double index = season_[rows_ % season_.size()];
  level_.Append(kind_ == SeasonKind::kMultiplicative ? value / index : value - index);
  ++rows_;
}

double ThetaModel::Forecast(int64_t steps) const {
  const double alpha = level_.weights().alpha;
  const double rows = static_cast<double>(rows_), ahead = static_cast<double>(steps);
  const double drift = ahead - 1 + (1 - std::pow(1 - alpha, rows)) / alpha;
  const double adjusted = level_.Forecast(steps) + 0.5 * slope_ * drift;
  const double index = season_[(rows_ + static_cast<size_t>(steps) - 1) % season_.size()];
  return kind_ == SeasonKind::kMultiplicative ? adjusted * index : adjusted + index;
}

}  // namespace traind
