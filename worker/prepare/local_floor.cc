#include "worker/prepare/local_floor.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "common/base/cores.h"
#include "common/data/table/series_places.h"
#include "common/publish/trial_selection.h"

namespace traind {
namespace {

void MixInto(const std::vector<float>& from, double weight, std::vector<float>& to) {
  to.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) to[i] += static_cast<float>(weight * from[i]);
}

// Series are fitted independently, and each writes its own rows.
int ThreadsFor(size_t series) {
  constexpr size_t kSeriesPerThread = 8, kMostThreads = 8;
  return std::min(UsableCores(),
                  static_cast<int>(std::min(series / kSeriesPerThread + 1, kMostThreads)));
}

// Fits a model to single series.
// Threads: safe, where no two fit the same series into the same floor.
class SeriesFitter {
 public:
  SeriesFitter(const Table& table, const FloorFolds& folds, LocalModel kind, int64_t season)
      : table_(table), folds_(folds), kind_(kind), season_(season) {}

  void Fit(const SeriesPlaces& series, Floor& floor) const {
    const size_t targets = table_.schema().targets();
    const std::vector<FoldRun> runs = RunsOf(series, folds_.fold_of);
    for (size_t k = 0; k < targets; ++k) {
      const std::vector<float> target = TargetOf(table_, series, k, folds_.split.shape.rolling);
      const std::vector<double> values(target.begin(), target.end());
      const auto cell = [&](Array<float>& array, int64_t row) -> float& {
        return array.values[static_cast<size_t>(row) * targets + k];
      };
      for (const FoldRun& run : runs) {
        const int64_t known = run.begin - StepsAhead(folds_.split, run, run.begin) + 1;
        LocalForecast local(kind_, values, known, season_);
        for (int64_t place = run.begin; place < run.end; ++place) {
          local.Forecast(place, StepsAhead(folds_.split, run, place),
                         cell(floor.oof, series.train_begin + place));
        }
      }
      LocalForecast local(kind_, values, series.train(), season_);
      for (int64_t row = 0; row < series.test(); ++row) {
        local.Forecast(series.train() + row, TestStepsAhead(folds_.split.shape, row),
                       cell(floor.test, series.test_begin + row));
      }
    }
  }

 private:
  const Table& table_;
  const FloorFolds& folds_;
  const LocalModel kind_;
  const int64_t season_;
};

}  // namespace

std::optional<Floor> LocalFloor(const Table& table, const FloorFolds& folds, Metric metric,
                                const SeasonalFloor& naive, LocalModel kind, absl::Duration time,
                                const Clock& clock) {
  if (folds.split.kind != SplitKind::kForward) return std::nullopt;
  Floor floor = naive.floor;
  floor.model = std::string(LocalModelName(kind));
  const std::vector<SeriesPlaces> all = AllSeries(table);
  const SeriesFitter fitter(table, folds, kind, naive.season);
  const absl::Duration begin = clock.MonotonicNow();
  std::atomic<size_t> next = 0, done = 0;
  std::atomic<bool> late = false;
  const auto work = [&] {
    for (size_t s = next++; s < all.size() && !late; s = next++) {
      fitter.Fit(all[s], floor);
      const size_t fitted = ++done;
      // Too late, or it would be with as much time for each of the other series.
      const double share = static_cast<double>(fitted) / static_cast<double>(all.size());
      const absl::Duration spent = clock.MonotonicNow() - begin;
      if (spent > time || (fitted % 16 == 0 && spent > time * 2 * share)) late = true;
    }
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < ThreadsFor(all.size()); ++thread) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  if (late) return std::nullopt;
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
