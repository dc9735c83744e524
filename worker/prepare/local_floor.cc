#include "worker/prepare/local_floor.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "common/data/table/series_places.h"
#include "common/publish/trial_selection.h"
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

// A model of the first rows of a series, which goes on row by row.
class Local {
 public:
  // REQUIRES: `values` outlives it.
  Local(LocalModel kind, const std::vector<double>& values, int64_t fitted, int64_t period)
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

  // Sets out to the forecast of the row at `place`, from the row that is `steps` before it; leaves
  // it where there is none. Places must not descend.
  void Forecast(int64_t place, int64_t steps, float& out) {
    if (model_ == nullptr) return;
    while (seen_ <= place - steps) model_->Append(values_[static_cast<size_t>(seen_++)]);
    const double value = model_->Forecast(place - seen_ + 1);
    if (std::isfinite(value)) out = static_cast<float>(std::clamp(value, least_, most_));
  }

 private:
  const std::vector<double>& values_;
  int64_t seen_;
  std::unique_ptr<SeriesModel> model_;
  double least_ = 0, most_ = 0;
};

void MixInto(const std::vector<float>& from, double weight, std::vector<float>& to) {
  to.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) to[i] += static_cast<float>(weight * from[i]);
}

}  // namespace

std::optional<Floor> LocalFloor(const Table& table, const FloorFolds& folds, Metric metric,
                                const SeasonalFloor& naive, LocalModel kind, absl::Duration time,
                                const Clock& clock) {
  if (folds.split.kind != SplitKind::kForward) return std::nullopt;
  const absl::Duration begin = clock.MonotonicNow();
  Floor floor = naive.floor;
  floor.model = kind == LocalModel::kEts ? "ets" : "theta";
  const size_t targets = table.schema().targets();
  const std::vector<SeriesPlaces> all = AllSeries(table);
  for (size_t s = 0; s < all.size(); ++s) {
    const SeriesPlaces& series = all[s];
    const std::vector<FoldRun> runs = RunsOf(series, folds.fold_of);
    for (size_t k = 0; k < targets; ++k) {
      const std::vector<float> target = TargetOf(table, series, k);
      const std::vector<double> values(target.begin(), target.end());
      const auto cell = [&](Array<float>& array, int64_t row) -> float& {
        return array.values[static_cast<size_t>(row) * targets + k];
      };
      for (const FoldRun& run : runs) {
        const int64_t known = run.begin - StepsAhead(folds.split, run, run.begin) + 1;
        Local local(kind, values, known, naive.period);
        for (int64_t place = run.begin; place < run.end; ++place) {
          local.Forecast(place, StepsAhead(folds.split, run, place),
                         cell(floor.oof, series.train_begin + place));
        }
      }
      Local local(kind, values, series.train(), naive.period);
      for (int64_t row = 0; row < series.test(); ++row) {
        local.Forecast(series.train() + row, row + 1, cell(floor.test, series.test_begin + row));
      }
    }
    // Too late, or it would be with as much time for each of the other series.
    const double share = static_cast<double>(s + 1) / static_cast<double>(all.size());
    const absl::Duration spent = clock.MonotonicNow() - begin;
    if (spent > time || (s % 16 == 15 && spent > time * 2 * share)) return std::nullopt;
  }
  floor.score = OofScore(table, folds, metric, floor.oof.values);
  return floor;
}

Floor MixFloors(const Table& table, const FloorFolds& folds, Metric metric,
                absl::Span<const Floor> floors) {
  const size_t targets = table.schema().targets();
  std::vector<FoldOfTrials> rows(static_cast<size_t>(folds.split.folds));
  std::vector<std::vector<std::vector<float>>> values(rows.size());  // [fold][floor]
  for (auto& of_fold : values) of_fold.resize(floors.size());
  for (size_t row = 0; row < folds.fold_of.size(); ++row) {
    if (folds.fold_of[row] < 0) continue;
    const auto fold = static_cast<size_t>(folds.fold_of[row]);
    for (size_t k = 0; k < targets; ++k) {
      rows[fold].targets.push_back(table.TargetValue(Split::kTrain, k)[row]);
      for (size_t f = 0; f < floors.size(); ++f) {
        values[fold][f].push_back(floors[f].oof.values[row * targets + k]);
      }
    }
  }
  for (size_t fold = 0; fold < rows.size(); ++fold) {
    rows[fold].trials.assign(values[fold].begin(), values[fold].end());
  }
  const TrialWeights weights = SelectTrials(metric, targets, rows, /*plain=*/0);
  Floor mix;
  mix.oof.shape = floors[0].oof.shape;
  mix.test.shape = floors[0].test.shape;
  for (size_t f = 0; f < floors.size(); ++f) {
    const double weight = weights.trials[f];
    if (weight == 0) continue;
    absl::StrAppend(&mix.model, mix.model.empty() ? "" : "+", floors[f].model);
    MixInto(floors[f].oof.values, weight, mix.oof.values);
    MixInto(floors[f].test.values, weight, mix.test.values);
  }
  mix.score = OofScore(table, folds, metric, mix.oof.values);
  return mix;
}

}  // namespace traind
