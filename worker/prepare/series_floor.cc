#include "worker/prepare/series_floor.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "common/data/table/folds.h"
#include "common/data/table/series_places.h"
#include "worker/series/season.h"

namespace traind {
namespace {

// At most so many series and rows are looked at for their differences.
constexpr size_t kMostSeries = 50;
constexpr ptrdiff_t kMostRows = 2000;
constexpr double kNearlyAsMuch = 0.9;

Floor NaiveFloor(const Table& table, const FloorFolds& folds, const Floor& prior, int64_t period) {
  Floor floor = prior;
  floor.model = "naive";
  const size_t targets = table.schema().targets();
  for (const SeriesPlaces& series : AllSeries(table)) {
    const std::vector<FoldRun> runs = RunsOf(series, folds.fold_of);
    for (size_t k = 0; k < targets; ++k) {
      const std::vector<float> values = TargetOf(table, series, k, folds.split.shape.rolling);
      const auto set = [&](Array<float>& to, int64_t row, float value) {
        // Where nothing is known before, the mean stays.
        if (!std::isnan(value)) to.values[static_cast<size_t>(row) * targets + k] = value;
      };
      for (const FoldRun& run : runs) {
        for (int64_t at = run.begin; at < run.end; ++at) {
          set(floor.oof, series.train_begin + at,
              SeasonBeforeOrLast(values, at, period, StepsAhead(folds.split, run, at)));
        }
      }
      for (int64_t i = 0; i < series.test(); ++i) {
        set(floor.test, series.test_begin + i,
            SeasonBeforeOrLast(values, series.train() + i, period,
                               TestStepsAhead(folds.split.shape, i)));
      }
    }
  }
  return floor;
}

// The differences of the last rows of a series.
std::vector<double> DifferencesOf(const Table& table, const SeriesPlaces& series) {
  const std::vector<float> target = TargetOf(table, series, 0, /*rolling=*/false);
  const auto end = target.begin() + static_cast<ptrdiff_t>(series.train());
  const std::vector<double> values(end - std::min<ptrdiff_t>(end - target.begin(), kMostRows), end);
  std::vector<double> differences = WithoutGaps(values);
  std::adjacent_difference(differences.begin(), differences.end(), differences.begin());
  if (!differences.empty()) differences.erase(differences.begin());
  return differences;
}

// Returns the season that most series have in their differences, or 1. (In the values themselves a
// trend looks like a season of any length.)
int64_t SeasonOfDifferences(const Table& table) {
  struct Candidate {
    int64_t period;
    int have;
    double correlation;
  };
  std::vector<Candidate> candidates;
  for (const int64_t period : kSeasonPeriods) {
    if (period > 1) candidates.push_back({period, 0, 0});
  }
  const std::vector<SeriesPlaces> all = AllSeries(table);
  const size_t step = all.size() / kMostSeries + 1;
  int looked_at = 0;
  for (size_t s = 0; s < all.size(); s += step, ++looked_at) {
    const std::vector<double> differences = DifferencesOf(table, all[s]);
    for (Candidate& candidate : candidates) {
      const auto period = static_cast<size_t>(candidate.period);
      if (!IsSeasonal(differences, period)) continue;
      ++candidate.have;
      candidate.correlation += Autocorrelation(differences, period);
    }
  }
  double most = 0;
  for (const Candidate& candidate : candidates) {
    if (2 * candidate.have > looked_at) most = std::max(most, candidate.correlation);
  }
  // Two seasons are a season, too.
  for (const Candidate& candidate : candidates) {
    const bool common = 2 * candidate.have > looked_at;
    if (common && candidate.correlation >= kNearlyAsMuch * most) return candidate.period;
  }
  return 1;
}

}  // namespace

std::optional<SeasonalFloor> SeasonalNaiveFloor(const Table& table, const FloorFolds& folds,
                                                Metric metric) {
  if (!table.schema().ordered || folds.split.shape.horizon < 1 ||
      table.schema().target_kind != TargetKind::kValue) {
    return std::nullopt;
  }
  int64_t longest = 0;
  for (const SeriesPlaces& series : AllSeries(table)) longest = std::max(longest, series.train());
  const Floor prior = PriorFloor(table, folds, metric);
  std::optional<SeasonalFloor> best;
  for (const int64_t period : kSeasonPeriods) {
    if (period > 1 && period > longest / 2) break;
    Floor floor = NaiveFloor(table, folds, prior, period);
    floor.score = OofScore(table, folds, metric, floor.oof.values);
    if (!best || Better(metric, floor.score, best->floor.score)) {
      best = SeasonalFloor{std::move(floor), period};
    }
  }
  best->season = best->period > 1 ? best->period : SeasonOfDifferences(table);
  return best;
}

std::optional<LagFloorResult> LagFloor(const Table& table, const FloorFolds& folds, Metric metric,
                                       int64_t period, const LinearFloorOptions& options,
                                       const Clock& clock) {
  const absl::Duration begin = clock.MonotonicNow();
  const auto late_at = [&](absl::Duration until) {
    return [&clock, begin, until] { return clock.MonotonicNow() - begin > until; };
  };
  const LagModels::Late late = late_at(options.time);
  LagFloorResult result;
  Floor& floor = result.floor;
  floor = PriorFloor(table, folds, metric);
  floor.model = "ridge";
  std::fill(floor.test.values.begin(), floor.test.values.end(), 0.0f);
  LagModels models(table, folds.split.shape, period);
  constexpr double kFitShare = 0.6;
  for (int fold = 0; fold < folds.split.folds; ++fold) {
    const std::vector<int32_t> training = TrainingRows(table, folds.fold_of, fold, folds.split);
    if (training.empty()) return std::nullopt;
    std::vector<int32_t> mine;
    for (size_t row = 0; row < folds.fold_of.size(); ++row) {
      if (folds.fold_of[row] == fold) mine.push_back(static_cast<int32_t>(row));
    }
    models.Fit(training, {options.rows_per_fold, options.seed,
                          late_at(options.time * ((fold + kFitShare) / folds.split.folds))});
    result.folds.push_back(models.state());
    const float share = 1.0f / static_cast<float>(folds.split.folds);
    if (!models.PredictTrain(mine, late, absl::MakeSpan(floor.oof.values)) ||
        !models.PredictTest(share, late, absl::MakeSpan(floor.test.values))) {
      return std::nullopt;
    }
  }
  for (const std::vector<float>* values : {&floor.oof.values, &floor.test.values}) {
    if (!std::all_of(values->begin(), values->end(), [](float x) { return std::isfinite(x); })) {
      return std::nullopt;
    }
  }
  floor.score = OofScore(table, folds, metric, floor.oof.values);
  return result;
}

}  // namespace traind
