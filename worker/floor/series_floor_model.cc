#include "worker/floor/series_floor_model.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>

#include "common/base/status_macros.h"
#include "common/data/table/series_places.h"
#include "worker/series/local_forecast.h"

namespace traind {
namespace {

// Sets the rows of one target of one series. values: its history, then NaN.
class SeriesPart {
 public:
  SeriesPart(const std::vector<float>& values, const SeriesPlaces& places, size_t targets,
             size_t target, std::vector<float>& out)
      : values_(values), places_(places), targets_(targets), target_(target), out_(out) {}

  void Naive(int64_t period, float prior) {
    for (int64_t i = 0; i < places_.test(); ++i) {
      const float value = SeasonBeforeOrLast(values_, places_.train() + i, period, i + 1);
      Cell(i) = std::isnan(value) ? prior : value;
    }
  }
  void Local(LocalModel kind, int64_t season) {
    const std::vector<double> values(values_.begin(), values_.end());
    LocalForecast local(kind, values, places_.train(), season);
    for (int64_t i = 0; i < places_.test(); ++i) {
      local.Forecast(places_.train() + i, i + 1, Cell(i));
    }
  }

 private:
  float& Cell(int64_t i) {
    return out_[static_cast<size_t>(places_.test_begin + i) * targets_ + target_];
  }

  const std::vector<float>& values_;
  const SeriesPlaces& places_;
  const size_t targets_, target_;
  std::vector<float>& out_;
};

}  // namespace

absl::StatusOr<std::vector<float>> SeriesFloorModel::Predict(const Table& later) const {
  const size_t targets = input.targets.size();
  std::vector<float> mix(static_cast<size_t>(later.rows(Split::kTest)) * targets);
  const std::vector<SeriesPlaces> all = AllSeries(later);
  for (const Part& part : parts) {
    std::vector<float> values(mix.size());
    if (part.name == "ridge") {
      LagModels models(later, shape, season);
      for (const LagModels::State& fold : ridge) {
        if (!models.Restore(fold)) return absl::DataLossError("the floor's weights do not fit");
        models.PredictTest(
            1.0f / static_cast<float>(ridge.size()), [] { return false; }, absl::MakeSpan(values));
      }
    } else if (part.name == "mean") {
      for (size_t i = 0; i < values.size(); ++i) values[i] = prior[i % targets];
    } else {
      const std::optional<LocalModel> kind = LocalModelByName(part.name);
      if (!kind && part.name != "naive") {
        return absl::DataLossError(absl::StrCat("the floor's part '", part.name, "' is unknown"));
      }
      for (const SeriesPlaces& places : all) {
        for (size_t k = 0; k < targets; ++k) {
          const std::vector<float> known = TargetOf(later, places, k, /*rolling=*/false);
          SeriesPart series(known, places, targets, k, values);
          series.Naive(period, prior[k]);
          if (kind) series.Local(*kind, season);
        }
      }
    }
    for (size_t i = 0; i < mix.size(); ++i) mix[i] += static_cast<float>(part.weight * values[i]);
  }
  return mix;
}

}  // namespace traind
