// Checks the later rows of a forecast's series.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/data/table/table.h"

namespace traind {

// The time between two rows of a series.
struct TimeStep {
  enum class Unit {
    kNone,    // rows are not evenly spaced
    kAmount,  // seconds, or the file's own numbers
    kMonths,  // months of the calendar, on the same day and at the same time
  };
  Unit unit = Unit::kNone;
  double amount = 0;

  // REQUIRES: unit is not kNone.
  double After(double time, int64_t steps) const;
};

// Steps that differ by less, relative to their size, are alike.
inline constexpr double kStepTolerance = 1e-6;

// Returns the months of the calendar from one time to the next, both in seconds since 1970; 0 if
// they are not on the same day of the month and at the same time of it.
double MonthsBetween(double from, double to);

// Returns the step that all rows of all series keep; kNone if there is none.
TimeStep StepOf(const Table& table);

// The columns that order a forecast's rows, and the series that models know.
struct SeriesInput {
  std::string time;
  std::string series;              // empty: all rows are one series
  std::vector<std::string> names;  // as TableSchema::series
  TimeStep step;
  DateOrder order = DateOrder::kMonthFirst;  // of the times
};

}  // namespace traind
