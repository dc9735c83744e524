// Where the rows of each series of a table are, and what is known when a row is forecast.
#pragma once

#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/data/table/folds.h"
#include "common/data/table/table.h"

namespace traind {

// Numbers of rows that a season may have: none, quarters, a week of days, a year of months, a day
// of hours, a year of weeks, a week of hours, a year of days.
inline constexpr int64_t kSeasonPeriods[] = {1, 4, 7, 12, 24, 52, 168, 365};

// A series' rows in order: training rows, then test rows.
struct SeriesPlaces {
  int64_t train_begin = 0, train_end = 0;
  int64_t test_begin = 0, test_end = 0;

  int64_t train() const { return train_end - train_begin; }
  int64_t test() const { return test_end - test_begin; }
};

std::vector<SeriesPlaces> AllSeries(const Table& table);

// A target of one series. In its test rows it is NaN, to be filled, unless `rolling` and the file
// has it.
std::vector<float> TargetOf(const Table& table, const SeriesPlaces& series, size_t target,
                            bool rolling);

// Some rows of a series in succession that one fold validates.
struct FoldRun {
  int fold = 0;
  int64_t begin = 0, end = 0;  // places in the series
};

// The runs of a series, in order; rows without a fold inside of one belong to it. fold_of: of all
// training rows.
std::vector<FoldRun> RunsOf(const SeriesPlaces& series, absl::Span<const int16_t> fold_of);

// Returns how many rows before the row at `place` of a run the last known row is. In a forward
// split a fold is forecast as test rows are: `horizon` rows at a time from the end of what is
// known, 1 to `horizon` rows ahead. In other splits, and in a rolling forecast, all rows are
// forecast `horizon` rows ahead.
int64_t StepsAhead(const SplitSpec& split, const FoldRun& run, int64_t place);
// The same of the test row `row` of a series (0: the first): from the end of its training rows, in
// a rolling forecast from `horizon` rows before.
int64_t TestStepsAhead(const SampleShape& shape, int64_t row);

// How many rows ahead each training row that a fold validates is forecast; 0: no fold validates it.
// Empty: it is no forecast of an ordered table. fold_of: of all training rows.
std::vector<int32_t> TrainSteps(const Table& table, const SplitSpec& split,
                                absl::Span<const int16_t> fold_of);
// The same of test rows, which follow the training rows: at most `horizon`.
std::vector<int32_t> TestSteps(const Table& table, const SampleShape& shape);

// Returns the last known value that is a whole number of periods, and at least `steps` rows, before
// the place `at`; NaN if there is none.
float SeasonBefore(const std::vector<float>& values, int64_t at, int64_t period, int64_t steps);

// The same; where there is none, the last known value at least `steps` rows before.
float SeasonBeforeOrLast(const std::vector<float>& values, int64_t at, int64_t period,
                         int64_t steps);

}  // namespace traind
