// The Theta method (Assimakopoulos & Nikolopoulos 2000), in the form of Hyndman & Billah (2003):
// simple exponential smoothing with half the slope of a straight line through the series.
#pragma once

#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "worker/series/exponential_smoothing.h"
#include "worker/series/season.h"
#include "worker/series/series_model.h"

namespace traind {

class ThetaModel final : public SeriesModel {
 public:
  // If the series is seasonal (IsSeasonal), its season is taken out first: it multiplies where all
  // values are positive, else it adds. Only the last `most_rows` values are looked at. Null if
  // fewer than four values are known.
  static std::unique_ptr<SeriesModel> Fit(absl::Span<const double> values, size_t period,
                                          size_t most_rows);

  void Append(double value) override;
  double Forecast(int64_t steps) const override;

 private:
  ThetaModel(SeasonKind kind, std::vector<double> season, double slope, ExponentialSmoothing level)
      : kind_(kind), season_(std::move(season)), slope_(slope), level_(std::move(level)) {}

  const SeasonKind kind_;
  const std::vector<double> season_;  // [1]: none
  const double slope_;
  ExponentialSmoothing level_;
  size_t rows_ = 0;  // appended
};

}  // namespace traind
