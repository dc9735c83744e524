#include "worker/floor/lag_models.h"

#include <algorithm>
#include <cmath>

namespace traind {
namespace {

constexpr int64_t kMostLags = 48;
constexpr size_t kMostFeatures = 64;
constexpr float kFarthest = 8;  // maximum distance from the mean, in standard deviations
constexpr double kL2 = 1;

template <typename Values>
LagScale ScaleOf(const Values& values) {
  LagScale scale;
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

}  // namespace

float LagScale::operator()(float value) const {
  if (std::isnan(value)) return 0;
  const auto scaled = static_cast<float>((value - mean) * inverse);
  return std::min(std::max(scaled, -kFarthest), kFarthest);
}

LagModels::LagModels(const Table& table, const SampleShape& shape, int64_t period)
    : table_(table),
      horizon_(shape.horizon),
      lags_(std::min(shape.window, kMostLags)),
      period_(period),
      series_(AllSeries(table)) {
  const std::vector<Column>& features = table.schema().features;
  for (size_t f = 0; f < features.size(); ++f) {
    if (features[f].kind == ColumnKind::kNumeric && features_.size() < kMostFeatures) {
      features_.push_back(static_cast<int>(f));
    }
  }
  all_.resize(table.schema().targets());
  for (size_t s = 0; s < series_.size(); ++s) {
    for (size_t k = 0; k < all_.size(); ++k) {
      all_[k].push_back(TargetOf(table, series_[s], k, shape.rolling));
    }
    for (int64_t i = 0; i < series_[s].train(); ++i) place_of_.emplace_back(s, i);
  }
  one_.rows = 1;
  one_.numbers = width();
  one_.values.resize(one_.numbers);
}

void LagModels::Row(size_t series, int64_t at, size_t target, const std::vector<float>& values,
                    float* out) const {
  const LagScale& scale = target_scale_[target];
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

void LagModels::Fit(absl::Span<const int32_t> rows, const Fitting& fitting) {
  std::vector<int32_t> sample(rows.begin(), rows.end());
  const auto most = static_cast<size_t>(fitting.most_rows);
  if (sample.size() > most) {
    SeededRandom random(fitting.seed);
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
    models_.push_back(NewModel());
    FitOptions fit;
    fit.l2 = kL2;
    fit.stop = fitting.late;
    models_.back().Fit(design, wanted, fit);
  }
}

LagModels::State LagModels::state() const {
  State state{target_scale_, feature_scale_, {}};
  for (const LinearModel& model : models_) state.weights.push_back(model.weights());
  return state;
}

bool LagModels::Restore(const State& state) {
  if (state.targets.size() != all_.size() || state.features.size() != features_.size() ||
      state.weights.size() != all_.size()) {
    return false;
  }
  target_scale_ = state.targets;
  feature_scale_ = state.features;
  models_.clear();
  for (const std::vector<float>& weights : state.weights) {
    models_.push_back(NewModel());
    if (weights.size() != models_.back().weights().size()) return false;
    models_.back().SetWeights(weights);
  }
  return true;
}

float LagModels::Predict(size_t series, int64_t at, size_t target,
                         const std::vector<float>& values) {
  Row(series, at, target, values, one_.values.data());
  float scaled = 0;
  models_[target].Predict(one_, absl::MakeSpan(&scaled, 1));
  const LagScale& scale = target_scale_[target];
  const float within = std::min(std::max(scaled, -kFarthest), kFarthest);
  return static_cast<float>(scale.mean + (scale.inverse > 0 ? within / scale.inverse : 0));
}

bool LagModels::PredictTrain(absl::Span<const int32_t> rows, const Late& late,
                             absl::Span<float> out) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i % 256 == 0 && late()) return false;
    const auto row = static_cast<size_t>(rows[i]);
    const auto& [series, at] = place_of_[row];
    for (size_t k = 0; k < all_.size(); ++k) {
      out[row * all_.size() + k] = Predict(series, at, k, all_[k][series]);
    }
  }
  return true;
}

bool LagModels::PredictTest(float share, const Late& late, absl::Span<float> out) {
  for (size_t s = 0; s < series_.size(); ++s) {
    const SeriesPlaces& places = series_[s];
    for (size_t k = 0; k < all_.size(); ++k) {
      std::vector<float> values = all_[k][s];
      for (int64_t i = 0; i < places.test(); ++i) {
        if (i % 256 == 0 && late()) return false;
        const int64_t at = places.train() + i;
        const float value = Predict(s, at, k, values);
        float& known = values[static_cast<size_t>(at)];
        if (std::isnan(known)) known = value;
        out[static_cast<size_t>(places.test_begin + i) * all_.size() + k] += share * value;
      }
    }
  }
  return true;
}

}  // namespace traind
