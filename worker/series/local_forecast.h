// Forecasts of one series by a statistical model of its own.
#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "worker/series/series_model.h"

namespace traind {

enum class LocalModel { kEts, kTheta };
absl::string_view LocalModelName(LocalModel kind);
std::optional<LocalModel> LocalModelByName(absl::string_view name);

// A model that is fitted to the first rows of a series and goes on row by row. Forecasts are kept
// within the range of the fitted values, widened on both sides by its width.
// Threads: confined to one.
class LocalForecast {
 public:
  // Fits the model to the first `fitted` rows; period: the rows of a season. REQUIRES: `values`
  // outlives it.
  LocalForecast(LocalModel kind, const std::vector<double>& values, int64_t fitted, int64_t period);

  // Sets out to the forecast of the row at `place`, from the row that is `steps` before it; leaves
  // it where there is none. Places must not descend.
  void Forecast(int64_t place, int64_t steps, float& out);

 private:
  const std::vector<double>& values_;
  int64_t seen_;
  std::unique_ptr<SeriesModel> model_;
  double least_ = 0, most_ = 0;
};

}  // namespace traind
