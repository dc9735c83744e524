#include "worker/prepare/series_floor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/data/table/folds.h"
#include "common/data/table/series_places.h"
#include "worker/floor/linear_model.h"

namespace traind {
namespace {

constexpr int64_t kMostLags = 48;
constexpr int64_t kMostFeatures = 64;
constexpr float kFarthest = 8;  // maximum distance from the mean, in standard deviations
constexpr double kL2 = 1;

float NaiveValue(const std::vector<float>& values, int64_t at, int64_t period, int64_t steps) {
  const float value = SeasonBefore(values, at, period, steps);
  return std::isnan(value) ? SeasonBefore(values, at, 1, steps) : value;
}

Floor NaiveFloor(const Table& table, const FloorFolds& folds, const Floor& prior, int64_t period) {
  Floor floor = prior;
  floor.model = "naive";
  const size_t targets = table.schema().targets();
  for (const SeriesPlaces& series : AllSeries(table)) {
    const std::vector<FoldRun> runs = RunsOf(series, folds.fold_of);
    for (size_t k = 0; k < targets; ++k) {
      const std::vector<float> values = TargetOf(table, series, k);
      const auto set = [&](Array<float>& to, int64_t row, float value) {
        // Where nothing is known before, the mean stays.
        if (!std::isnan(value)) to.values[static_cast<size_t>(row) * targets + k] = value;
      };
      for (const FoldRun& run : runs) {
        for (int64_t at = run.begin; at < run.end; ++at) {
          set(floor.oof, series.train_begin + at,
              NaiveValue(values, at, period, StepsAhead(folds.split, run, at)));
        }
      }
      for (int64_t i = 0; i < series.test(); ++i) {
        set(floor.test, series.test_begin + i,
            NaiveValue(values, series.train() + i, period, i + 1));
      }
    }
  }
  return floor;
}

// Mean and standard deviation of the values that are not missing.
struct Scale {
  double mean = 0, inverse = 0;

  float operator()(float value) const {
    if (std::isnan(value)) return 0;
    const auto scaled = static_cast<float>((value - mean) * inverse);
    return std::min(std::max(scaled, -kFarthest), kFarthest);
  }
};

template <typename Values>
Scale ScaleOf(const Values& values) {
  Scale scale;
  double count = 0, squares = 0;
  for (const float value : values) {
    if (std::isnan(value)) continue;
    scale.mean += value;
    count += 1;
  }
  if (count == 0) return scale;
  scale.mean /= count;
  for (const float value : values) {
    if (!std::isnan(value)) squares += (value - scale.mean) * (value - scale.mean);
  }
  const double deviation = std::sqrt(squares / count);
  if (deviation > 1e-12 * std::abs(scale.mean)) scale.inverse = 1 / deviation;
  return scale;
}

// One fold's models, one for each target.
class LagModels {
 public:
  LagModels(const Table& table, const FloorFolds& folds, int64_t period,
            const LinearFloorOptions& options, const Clock& clock, absl::Duration begin)
      : table_(table),
        horizon_(folds.split.shape.horizon),
        lags_(std::min(folds.split.shape.window, kMostLags)),
        period_(period),
        options_(options),
        clock_(clock),
        begin_(begin) {
    const std::vector<Column>& features = table.schema().features;
    for (size_t f = 0; f < features.size(); ++f) {
      if (features[f].kind == ColumnKind::kNumeric && features_.size() < kMostFeatures) {
        features_.push_back(static_cast<int>(f));
      }
    }
    for (size_t k = 0; k < table.schema().targets(); ++k) all_.push_back({});
    series_ = AllSeries(table);
    for (const SeriesPlaces& series : series_) {
      for (size_t k = 0; k < all_.size(); ++k) all_[k].push_back(TargetOf(table, series, k));
      for (int64_t i = 0; i < series.train(); ++i) {
        place_of_.emplace_back(series_of_count_, i);
      }
      ++series_of_count_;
    }
  }

  // REQUIRES: rows is not empty.
  void Fit(absl::Span<const int32_t> rows, absl::Duration until);
  // Predicts out-of-fold values of training rows.
  bool PredictTrain(absl::Span<const int32_t> rows, Floor& floor);
  // Adds share * the test rows' predictions. Each row continues from those before it.
  bool PredictTest(float share, Floor& floor);

 private:
  size_t width() const { return static_cast<size_t>(lags_) + 1 + features_.size(); }
  bool LateAt(absl::Duration until) const { return clock_.MonotonicNow() - begin_ > until; }
  void Row(size_t series, int64_t at, size_t target, const std::vector<float>& values,
           float* out) const;
  float Predict(size_t series, int64_t at, size_t target, const std::vector<float>& values);

  const Table& table_;
  const int64_t horizon_, lags_, period_;
  const LinearFloorOptions& options_;
  const Clock& clock_;
  const absl::Duration begin_;
  std::vector<int> features_;
  std::vector<SeriesPlaces> series_;
  size_t series_of_count_ = 0;
  std::vector<std::pair<size_t, int64_t>>
      place_of_;  // [training row]: its series and its place in it
  std::vector<std::vector<std::vector<float>>> all_;  // [target][series]
  std::vector<Scale> target_scale_, feature_scale_;
  std::vector<LinearModel> models_;
  DesignRows one_;  // the row that is being predicted
};

void LagModels::Row(size_t series, int64_t at, size_t target, const std::vector<float>& values,
                    float* out) const {
  const Scale& scale = target_scale_[target];
  for (int64_t lag = 0; lag < lags_; ++lag) {
    const int64_t from = at - horizon_ - lag;
    *out++ = from < 0 ? 0 : scale(values[static_cast<size_t>(from)]);
  }
  *out++ = scale(SeasonBefore(values, at, period_, horizon_));
  const SeriesPlaces& places = series_[series];
  const int64_t known = at - horizon_;
  for (size_t f = 0; f < features_.size(); ++f) {
    const bool test = known >= places.train();
    const auto numbers = table_.Numeric(features_[f], test ? Split::kTest : Split::kTrain);
    const int64_t row =
        test ? places.test_begin + known - places.train() : places.train_begin + known;
    *out++ = known < 0 ? 0 : feature_scale_[f](numbers[static_cast<size_t>(row)]);
  }
}

void LagModels::Fit(absl::Span<const int32_t> rows, absl::Duration until) {
  std::vector<int32_t> sample(rows.begin(), rows.end());
  const auto most = static_cast<size_t>(options_.rows_per_fold);
  if (sample.size() > most) {
    SeededRandom random(options_.seed);
    random.Shuffle(sample);
    sample.resize(most);
  }
  const auto scale_of = [&](absl::Span<const float> values) {
    std::vector<float> taken;
    for (const int32_t row : sample) taken.push_back(values[static_cast<size_t>(row)]);
    return ScaleOf(taken);
  };
  target_scale_.clear();
  feature_scale_.clear();
  models_.clear();
  for (size_t k = 0; k < all_.size(); ++k) {
    target_scale_.push_back(scale_of(table_.TargetValue(Split::kTrain, k)));
  }
  for (const int f : features_) {
    feature_scale_.push_back(scale_of(table_.Numeric(f, Split::kTrain)));
  }
  DesignRows design;
  design.rows = sample.size();
  design.numbers = width();
  for (size_t k = 0; k < all_.size(); ++k) {
    design.values.assign(design.rows * design.numbers, 0);
    std::vector<float> wanted;
    for (size_t i = 0; i < sample.size(); ++i) {
      const auto& [series, at] = place_of_[static_cast<size_t>(sample[i])];
      const std::vector<float>& values = all_[k][series];
      Row(series, at, k, values, design.values.data() + i * design.numbers);
      wanted.push_back(target_scale_[k](values[static_cast<size_t>(at)]));
    }
    models_.emplace_back(Link::kIdentity, design.numbers, 0, 0, 1);
    FitOptions fit;
    fit.l2 = kL2;
    fit.stop = [&] { return LateAt(until); };
    models_.back().Fit(design, wanted, fit);
  }
  one_.rows = 1;
  one_.numbers = width();
  one_.values.resize(one_.numbers);
}

float LagModels::Predict(size_t series, int64_t at, size_t target,
                         const std::vector<float>& values) {
  Row(series, at, target, values, one_.values.data());
  float scaled = 0;
  models_[target].Predict(one_, absl::MakeSpan(&scaled, 1));
  const Scale& scale = target_scale_[target];
  const float within = std::min(std::max(scaled, -kFarthest), kFarthest);
  return static_cast<float>(scale.mean + (scale.inverse > 0 ? within / scale.inverse : 0));
}

bool LagModels::PredictTrain(absl::Span<const int32_t> rows, Floor& floor) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i % 256 == 0 && LateAt(options_.time)) return false;
    const auto row = static_cast<size_t>(rows[i]);
    const auto& [series, at] = place_of_[row];
    for (size_t k = 0; k < all_.size(); ++k) {
      floor.oof.values[row * all_.size() + k] = Predict(series, at, k, all_[k][series]);
    }
  }
  return true;
}

bool LagModels::PredictTest(float share, Floor& floor) {
  for (size_t s = 0; s < series_.size(); ++s) {
    const SeriesPlaces& places = series_[s];
    for (size_t k = 0; k < all_.size(); ++k) {
      std::vector<float> values = all_[k][s];
      for (int64_t i = 0; i < places.test(); ++i) {
        if (i % 256 == 0 && LateAt(options_.time)) return false;
        const int64_t at = places.train() + i;
        const float value = Predict(s, at, k, values);
        values[static_cast<size_t>(at)] = value;
        floor.test.values[static_cast<size_t>(places.test_begin + i) * all_.size() + k] +=
            share * value;
      }
    }
  }
  return true;
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
  return best;
}

std::optional<Floor> LagFloor(const Table& table, const FloorFolds& folds, Metric metric,
                              int64_t period, const LinearFloorOptions& options,
                              const Clock& clock) {
  const absl::Duration begin = clock.MonotonicNow();
  Floor floor = PriorFloor(table, folds, metric);
  floor.model = "ridge";
  std::fill(floor.test.values.begin(), floor.test.values.end(), 0.0f);
  LagModels models(table, folds, period, options, clock, begin);
  constexpr double kFitShare = 0.6;
  for (int fold = 0; fold < folds.split.folds; ++fold) {
    const std::vector<int32_t> training = TrainingRows(table, folds.fold_of, fold, folds.split);
    if (training.empty()) return std::nullopt;
    std::vector<int32_t> mine;
    for (size_t row = 0; row < folds.fold_of.size(); ++row) {
      if (folds.fold_of[row] == fold) mine.push_back(static_cast<int32_t>(row));
    }
    models.Fit(training, options.time * ((fold + kFitShare) / folds.split.folds));
    if (!models.PredictTrain(mine, floor)) return std::nullopt;
    if (!models.PredictTest(1.0f / static_cast<float>(folds.split.folds), floor)) {
      return std::nullopt;
    }
  }
  for (const std::vector<float>* values : {&floor.oof.values, &floor.test.values}) {
    if (!std::all_of(values->begin(), values->end(), [](float x) { return std::isfinite(x); })) {
      return std::nullopt;
    }
  }
  floor.score = OofScore(table, folds, metric, floor.oof.values);
  return floor;
}

}  // namespace traind
