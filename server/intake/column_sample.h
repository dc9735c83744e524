// Describes a column by the beginning of its table.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <string>

#include "common/spec/automatic_rules.h"

namespace traind {

struct ColumnSample {
  static constexpr size_t kMostDistinct = 10000;

  int64_t rows = 0;       // that were read
  int64_t values = 0;     // that are not missing
  int64_t numbers = 0;    // among the values
  bool whole = true;      // all numbers are whole ones
  bool negative = false;  // some number is below 0
  int64_t zeros = 0;      // among the numbers
  double mean = 0;        // of the numbers
  double variance = 0;    // around the mean
  double least = 0;       // of the numbers
  double skewness = 0;    // of the numbers, those beyond the 1st and 99th percentile taken as these
  size_t distinct = 0;    // different values; kMostDistinct stands for more
  std::string text;       // the first value that is no number
  double words = 0;       // between blanks, of a value that is no number, on average
  double bytes_per_row = 0;  // of the table
};

// Reads the rows of `bytes`, the beginning of a table. A row that the end of the part cuts, and
// what follows a mistake, are ignored. NotFound: the table has no such column.
absl::StatusOr<ColumnSample> SampleColumn(absl::string_view bytes, const std::string& name,
                                          const std::string& column);

// Whether a target looks like counts of events: whole numbers from 0 on, with zeros among them,
// that scatter about as much as a Poisson distribution does, or more.
bool LooksLikeCounts(const ColumnSample& sample);

// Whether one tail of the numbers is so much longer than the other that a model may gain by
// learning the target in another scale.
bool IsSkewed(const ColumnSample& sample);

// Whether the column holds texts that mostly differ from row to row and have so many words on
// average.
bool HoldsTexts(const ColumnSample& sample, double words);

// The type of a task whose target has these values, by the rules of task.type in proto/job.proto.
// Errors: InvalidArgument: there is no value.
absl::StatusOr<TypeChoice> TypeOfTarget(const std::string& target, const ColumnSample& sample);

}  // namespace traind
