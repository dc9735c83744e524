#include "worker/trees/lag_encoder.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

namespace traind {
namespace {

constexpr int64_t kMostLags = 24;
// A row is forecast from several rows before it, until there are so many samples.
constexpr int64_t kEnoughSamples = 30'000;
constexpr int64_t kMostSteps = 8;
constexpr uint64_t kStepSeed = 7;

// Mean and standard deviation of the known values.
std::pair<double, double> MomentsOf(absl::Span<const float> values) {
  double sum = 0, squares = 0, count = 0;
  for (const float value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    ++count;
  }
  const double mean = count > 0 ? sum / count : std::nan("");
  for (const float value : values) {
    if (!std::isnan(value)) squares += (value - mean) * (value - mean);
  }
  return {mean, count > 0 ? std::sqrt(squares / count) : 0};
}

}  // namespace

LagEncoder::LagEncoder(std::shared_ptr<const Table> table, const TreeEncoder& columns,
                       const SplitSpec& split, absl::Span<const int32_t> training,
                       const std::string& time, std::vector<std::string> known_ahead, bool raw)
    : table_(std::move(table)), split_(split), series_(AllSeries(*table_)) {
  state_.raw = raw;
  state_.known_ahead = std::move(known_ahead);
  state_.forward = split.kind == SplitKind::kForward && !split.shape.rolling;
  state_.lags = std::min(split.shape.window, kMostLags);
  int64_t longest = 0;
  for (const SeriesPlaces& series : series_) longest = std::max(longest, series.train());
  for (const int64_t period : kSeasonPeriods) {
    if (period > 1 && period <= longest / 2) state_.periods.push_back(period);
  }
  ReadTable(columns, time);
  FindScales(training);
  ChooseTraining(training);
  if (!raw) ChooseBase();
}

LagEncoder::LagEncoder(std::shared_ptr<const Table> table, const TreeEncoder& columns,
                       const SampleShape& shape, const std::string& time, LagState state)
    : table_(std::move(table)),
      split_{state.forward ? SplitKind::kForward : SplitKind::kKFold, 0, 0, shape},
      state_(std::move(state)),
      series_(AllSeries(*table_)) {
  ReadTable(columns, time);
}

void LagEncoder::ReadTable(const TreeEncoder& columns, const std::string& time) {
  for (const SeriesPlaces& series : series_) {
    values_.push_back(TargetOf(*table_, series, 0, split_.shape.rolling));
  }
  train_rows_ = columns.Encode(*table_, Split::kTrain, 0, table_->rows(Split::kTrain));
  const int64_t test_rows = table_->rows(Split::kTest);
  test_step_ = split_.shape.horizon;
  if (split_.shape.rolling && TestIsKnown()) test_step_ = std::max(test_step_, test_rows);
  if (test_rows > 0) test_rows_ = columns.Encode(*table_, Split::kTest, 0, test_rows);
  NameColumns(columns, time);
}

void LagEncoder::NameColumns(const TreeEncoder& columns, const std::string& time) {
  const auto add = [&](std::string name, bool categorical) {
    names_.push_back(std::move(name));
    categorical_.push_back(categorical);
  };
  for (int64_t lag = 0; lag < state_.lags; ++lag) add(absl::StrCat("lag_", lag), false);
  for (const int64_t period : state_.periods) add(absl::StrCat("season_", period), false);
  for (const char* name : {"mean", "deviation", "base", "steps"}) add(name, false);
  const std::vector<Column>& features = table_->schema().features;
  for (size_t i = 0; i < static_cast<size_t>(columns.columns()); ++i) {
    const Column& feature = features[columns.feature(i)];
    table_columns_.push_back(i);
    const std::string& column = feature.file_column();
    known_ahead_.push_back(
        (!time.empty() && column == time) ||
        std::count(state_.known_ahead.begin(), state_.known_ahead.end(), column));
    add(columns.names().empty() ? absl::StrCat("column_", i) : columns.names()[i],
        columns.categorical(i));
  }
  const std::set<std::string> known(names_.begin(), names_.end());
  if (known.size() < names_.size()) names_.clear();
}

void LagEncoder::FindScales(absl::Span<const int32_t> rows) {
  const auto targets = table_->TargetValue(Split::kTrain);
  std::vector<std::vector<float>> of_series(series_.size());
  std::vector<float> all;
  size_t s = 0;
  for (const int32_t row : rows) {  // ascending, like the series
    while (row >= series_[s].train_end) ++s;
    of_series[s].push_back(targets[static_cast<size_t>(row)]);
    all.push_back(of_series[s].back());
  }
  const auto [mean, deviation] = MomentsOf(all);
  for (const std::vector<float>& values : of_series) {
    const auto [own_mean, own_deviation] = MomentsOf(values);
    const bool own = own_deviation > 1e-6 * std::fabs(own_mean);
    const bool scaled = !state_.raw && series_.size() > 1;
    state_.mean.push_back(state_.raw ? 0
                                     : static_cast<float>(std::isnan(own_mean) ? mean : own_mean));
    state_.scale.push_back(
        !scaled ? 1 : static_cast<float>(own ? own_deviation : std::max(deviation, 1e-12)));
  }
}

void LagEncoder::ChooseTraining(absl::Span<const int32_t> rows) {
  const int64_t horizon = split_.shape.horizon;
  const auto count = static_cast<int64_t>(rows.size());
  const bool forward = state_.forward;
  const int64_t times =
      forward ? std::clamp<int64_t>(kEnoughSamples / count, 1, std::min(horizon, kMostSteps)) : 1;
  SeededRandom random(kStepSeed);
  size_t s = 0;
  for (const int32_t row : rows) {
    while (row >= series_[s].train_end) ++s;
    const auto first = static_cast<int64_t>(random.Below(static_cast<uint64_t>(horizon)));
    for (int64_t i = 0; i < times; ++i) {
      const int64_t steps = forward ? 1 + (first + i * horizon / times) % horizon : horizon;
      training_.push_back({s, row - series_[s].train_begin, steps});
    }
  }
}

void LagEncoder::ChooseBase() {
  std::vector<float> cells(past());
  std::vector<double> squares(past() + 1);  // the last one: of the series' mean
  for (const LagSample& sample : training_) {
    Past(sample, cells.data());
    const float value = Value(sample);
    const float mean = state_.mean[sample.series], scale = state_.scale[sample.series];
    for (size_t i = 0; i <= cells.size(); ++i) {
      const float base = i < cells.size() && !std::isnan(cells[i]) ? cells[i] : mean;
      const double error = (value - base) / scale;
      squares[i] += error * error;
    }
  }
  const auto best = std::min_element(squares.begin(), squares.end()) - squares.begin();
  state_.base = static_cast<size_t>(best) == cells.size() ? -1 : best;
}

std::vector<LagSample> LagEncoder::Validation(absl::Span<const int16_t> fold_of, int fold) const {
  std::vector<LagSample> samples;
  for (size_t s = 0; s < series_.size(); ++s) {
    for (const FoldRun& run : RunsOf(series_[s], fold_of)) {
      if (run.fold != fold) continue;
      for (int64_t place = run.begin; place < run.end; ++place) {
        if (fold_of[static_cast<size_t>(series_[s].train_begin + place)] != fold) continue;
        samples.push_back({s, place, StepsAhead(split_, run, place)});
      }
    }
  }
  return samples;
}

bool LagEncoder::TestIsKnown() const {
  for (size_t s = 0; s < series_.size(); ++s) {
    const auto tested =
        absl::MakeConstSpan(values_[s]).last(static_cast<size_t>(series_[s].test()));
    if (std::any_of(tested.begin(), tested.end(), [](float v) { return std::isnan(v); })) {
      return false;
    }
  }
  return true;
}

std::vector<LagSample> LagEncoder::Test(int64_t begin) const {
  std::vector<LagSample> samples;
  for (size_t s = 0; s < series_.size(); ++s) {
    const int64_t end = std::min(series_[s].test(), begin + test_step_);
    const FoldRun run{0, series_[s].train() + begin, series_[s].train() + end};
    for (int64_t place = run.begin; place < run.end; ++place) {
      samples.push_back({s, place, StepsAhead(split_, run, place)});
    }
  }
  return samples;
}

absl::Status LagEncoder::PredictTest(Learnt learnt, absl::Span<float> out) {
  std::vector<float> answers;
  for (int64_t begin = 0;; begin += test_step_) {
    const std::vector<LagSample> samples = Test(begin);
    if (samples.empty()) return absl::OkStatus();
    const LagRows rows = Encode(samples);
    answers.resize(samples.size());
    const absl::Status status = learnt(rows.matrix, absl::MakeSpan(answers));
    if (!status.ok()) return status;
    for (size_t i = 0; i < samples.size(); ++i) {
      const float value = rows.base[i] + rows.scale[i] * answers[i];
      if (std::isnan(Value(samples[i]))) SetValue(samples[i], value);
      out[static_cast<size_t>(TestRow(samples[i]))] = value;
    }
  }
}

int64_t LagEncoder::TestRow(const LagSample& sample) const {
  const SeriesPlaces& series = series_[sample.series];
  return series.test_begin + sample.place - series.train();
}

float LagEncoder::Value(const LagSample& sample) const {
  return values_[sample.series][static_cast<size_t>(sample.place)];
}

void LagEncoder::SetValue(const LagSample& sample, float value) {
  values_[sample.series][static_cast<size_t>(sample.place)] = value;
}

void LagEncoder::Past(const LagSample& sample, float* out) const {
  const std::vector<float>& values = values_[sample.series];
  const int64_t known = sample.place - sample.steps;
  for (int64_t lag = 0; lag < state_.lags; ++lag) {
    const int64_t at = known - lag;
    *out++ = at < 0 ? std::nanf("") : values[static_cast<size_t>(at)];
  }
  for (const int64_t period : state_.periods) {
    *out++ = SeasonBefore(values, sample.place, period, sample.steps);
  }
  const int64_t first = std::max<int64_t>(0, known - split_.shape.window + 1);
  const auto window = absl::MakeConstSpan(values).subspan(
      static_cast<size_t>(first), static_cast<size_t>(std::max<int64_t>(0, known - first + 1)));
  *out = static_cast<float>(MomentsOf(window).first);
}

float LagEncoder::ColumnAt(size_t column, const LagSample& sample) const {
  const SeriesPlaces& series = series_[sample.series];
  const int64_t place = known_ahead_[column] ? sample.place : sample.place - sample.steps;
  if (place < 0) return std::nanf("");
  const bool test = place >= series.train();
  const TreeMatrix& rows = test ? test_rows_ : train_rows_;
  const int64_t row =
      test ? series.test_begin + place - series.train() : series.train_begin + place;
  return rows
      .values[table_columns_[column] * static_cast<size_t>(rows.rows) + static_cast<size_t>(row)];
}

LagRows LagEncoder::Encode(absl::Span<const LagSample> samples) const {
  LagRows rows;
  rows.matrix.rows = static_cast<int64_t>(samples.size());
  rows.matrix.columns = columns();
  rows.matrix.values.resize(samples.size() * categorical_.size());
  std::vector<float> past(this->past());
  for (size_t i = 0; i < samples.size(); ++i) {
    const LagSample& sample = samples[i];
    float* cell = rows.matrix.values.data() + i;
    const auto put = [&](float value) {
      *cell = value;
      cell += samples.size();
    };
    Past(sample, past.data());
    const float mean = state_.mean[sample.series], scale = state_.scale[sample.series];
    float base = state_.base < 0 ? mean : past[static_cast<size_t>(state_.base)];
    if (std::isnan(base)) base = mean;
    for (const float value : past) put((value - base) / scale);
    float squares = 0, count = 0;
    for (int64_t lag = 0; lag < state_.lags; ++lag) {
      const float from = (past[static_cast<size_t>(lag)] - past.back()) / scale;
      if (std::isnan(from)) continue;
      squares += from * from;
      ++count;
    }
    put(count > 0 ? std::sqrt(squares / count) : std::nanf(""));
    put((base - mean) / scale);
    put(static_cast<float>(sample.steps));
    for (size_t c = 0; c < table_columns_.size(); ++c) put(ColumnAt(c, sample));
    rows.base.push_back(base);
    rows.scale.push_back(scale);
  }
  return rows;
}

}  // namespace traind
