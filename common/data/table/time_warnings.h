// Warns of times that a forecast may not mean: those without a zone beside those with one, and
// steps that are not alike.
#pragma once

#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/data/table/column_reader.h"
#include "common/data/table/series_input.h"

namespace traind {

// The times of a file's rows, in the order of (series, time).
struct OrderedTimes {
  absl::string_view file, column;   // what warnings call them
  bool dates = false;               // seconds since 1970, not the file's own numbers
  absl::Span<const double> times;   // [row]
  absl::Span<const uint64_t> ends;  // [series]: the end of its rows
  std::vector<double> before;       // [series]: the time before its first row; NaN, absent: none
  absl::Span<const uint32_t> rows;  // [row]: its index in the file
};

// Returns the step that at least half of the rows keep, as seconds, numbers or months; kNone if
// there is none, or only one step. Last days of months are whole months apart.
TimeStep UsualStep(const OrderedTimes& rows);

// Warns if some steps are not `usual`, that of `usual_file`, or if there is no usual one and the
// steps are not alike. Regular rows get no warning.
void WarnOfSteps(const OrderedTimes& rows, const TimeStep& usual, absl::string_view usual_file,
                 std::vector<std::string>& warnings);

// Warns if only some times of the column have a zone, or if those of the training file, `train`,
// have one and these have none, or the other way round. train: null for the training file itself.
void WarnOfZones(absl::string_view file, absl::string_view column, const TimeColumn& times,
                 const TimeColumn* train, std::vector<std::string>& warnings);

}  // namespace traind
