#include "worker/prepare/local_floor.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/data/table/series_places.h"
#include "common/publish/trial_selection.h"

namespace traind {
namespace {

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
  floor.model = std::string(LocalModelName(kind));
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
        LocalForecast local(kind, values, known, naive.season);
        for (int64_t place = run.begin; place < run.end; ++place) {
          local.Forecast(place, StepsAhead(folds.split, run, place),
                         cell(floor.oof, series.train_begin + place));
        }
      }
      LocalForecast local(kind, values, series.train(), naive.season);
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

FloorMix MixFloors(const Table& table, const FloorFolds& folds, Metric metric,
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
  return {std::move(mix), weights.trials};
}

}  // namespace traind
