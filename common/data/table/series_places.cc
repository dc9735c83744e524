#include "common/data/table/series_places.h"

#include <algorithm>
#include <cmath>

namespace traind {

std::vector<SeriesPlaces> AllSeries(const Table& table) {
  const auto train = table.SeriesEnds(Split::kTrain);
  const auto test = table.SeriesEnds(Split::kTest);
  std::vector<SeriesPlaces> all;
  SeriesPlaces places;
  for (size_t s = 0; s < train.size(); ++s) {
    places.train_begin = places.train_end;
    places.test_begin = places.test_end;
    places.train_end = static_cast<int64_t>(train[s]);
    if (!test.empty()) places.test_end = static_cast<int64_t>(test[s]);
    all.push_back(places);
  }
  return all;
}

std::vector<float> TargetOf(const Table& table, const SeriesPlaces& series, size_t target,
                            bool rolling) {
  const auto values = table.TargetValue(Split::kTrain, target);
  std::vector<float> out(values.begin() + series.train_begin, values.begin() + series.train_end);
  if (rolling && table.schema().test_has_target) {
    const auto known = table.TargetValue(Split::kTest, target);
    out.insert(out.end(), known.begin() + series.test_begin, known.begin() + series.test_end);
  } else {
    out.resize(out.size() + static_cast<size_t>(series.test()), std::nanf(""));
  }
  return out;
}

std::vector<FoldRun> RunsOf(const SeriesPlaces& series, absl::Span<const int16_t> fold_of) {
  std::vector<FoldRun> runs;
  for (int64_t place = 0; place < series.train(); ++place) {
    const int fold = fold_of[static_cast<size_t>(series.train_begin + place)];
    if (fold < 0) continue;
    if (runs.empty() || runs.back().fold != fold) runs.push_back({fold, place, place});
    runs.back().end = place + 1;
  }
  return runs;
}

int64_t StepsAhead(const SplitSpec& split, const FoldRun& run, int64_t place) {
  const int64_t horizon = split.shape.horizon;
  if (split.kind != SplitKind::kForward || split.shape.rolling) return horizon;
  return (place - run.begin) % horizon + 1;
}

int64_t TestStepsAhead(const SampleShape& shape, int64_t row) {
  return shape.rolling ? shape.horizon : row + 1;
}

std::vector<int32_t> TrainSteps(const Table& table, const SplitSpec& split,
                                absl::Span<const int16_t> fold_of) {
  std::vector<int32_t> steps;
  if (!table.schema().ordered || split.shape.horizon < 1) return steps;
  steps.resize(fold_of.size());
  for (const SeriesPlaces& series : AllSeries(table)) {
    for (const FoldRun& run : RunsOf(series, fold_of)) {
      for (int64_t place = run.begin; place < run.end; ++place) {
        steps[static_cast<size_t>(series.train_begin + place)] =
            static_cast<int32_t>(StepsAhead(split, run, place));
      }
    }
  }
  return steps;
}

std::vector<int32_t> TestSteps(const Table& table, const SampleShape& shape) {
  std::vector<int32_t> steps;
  if (!table.schema().ordered || shape.horizon < 1) return steps;
  steps.resize(static_cast<size_t>(table.schema().test_rows));
  for (const SeriesPlaces& series : AllSeries(table)) {
    for (int64_t place = 0; place < series.test(); ++place) {
      steps[static_cast<size_t>(series.test_begin + place)] =
          static_cast<int32_t>(std::min(TestStepsAhead(shape, place), shape.horizon));
    }
  }
  return steps;
}

float SeasonBefore(const std::vector<float>& values, int64_t at, int64_t period, int64_t steps) {
  const int64_t seasons = (steps + period - 1) / period;
  for (int64_t i = at - seasons * period; i >= 0; i -= period) {
    const float value = values[static_cast<size_t>(i)];
    if (!std::isnan(value)) return value;
  }
  return std::nanf("");
}

float SeasonBeforeOrLast(const std::vector<float>& values, int64_t at, int64_t period,
                         int64_t steps) {
  const float value = SeasonBefore(values, at, period, steps);
  return std::isnan(value) ? SeasonBefore(values, at, 1, steps) : value;
}

}  // namespace traind
