// The values that a search may give to a field, as a spec writes them:
//
//   log(1e-4, 1e-1)      uniform on a logarithmic scale; log(1, 100, 3) has 3 values
//   uniform(0, 0.5)      uniform; uniform(0, 1, 0.1) has steps of 0.1
//   int(2, 8)            whole numbers; int(0, 10, 5) has steps of 5
//   log_int(4, 200)      whole numbers, uniform on a logarithmic scale
//   choice(a, b, [1, 2]) one of several texts
//
// Threads: all functions are safe.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace traind {

struct Range {
  enum Kind { kUniform, kLog, kInt, kLogInt, kChoice } kind = kUniform;
  double low = 0, high = 0;          // both belong to the range
  double step = 0;                   // kUniform, kInt: between values; 0: there is none
  int count = 0;                     // kLog: the number of values; 0: any
  std::vector<std::string> choices;  // kChoice
};

// Errors: InvalidArgument tells what is wrong, without the field that the range is for.
absl::StatusOr<Range> ParseRange(absl::string_view text);
std::string Text(const Range& range);

// The number of different values; infinite for a continuous range.
double ValueCount(const Range& range);
// Value `index` of a range with finitely many, in order.
std::string ValueOf(const Range& range, int index);

// The line on which a range's values are drawn. Numbers are their own places there, those of a
// logarithmic scale their logarithms. A choice is its index, and has no order.
struct Axis {
  double low = 0, high = 0;
  double step = 0;  // between places; 0: values may lie anywhere
  int choices = 0;  // 0: it is no choice
};
Axis AxisOf(const Range& range);
// The value that is nearest to a place, within the range. It has about five digits.
std::string ValueAt(const Range& range, double place);
// The place of a value; none where it is not in the range.
std::optional<double> PlaceOf(const Range& range, absl::string_view value);

// A range of the field with this path: "train.learning_rate".
struct Parameter {
  std::string path;
  Range range;
};
using Space = std::vector<Parameter>;  // by path

// Reads texts of ranges by path. Errors: those of ParseRange, behind the path.
absl::StatusOr<Space> ParseSpace(const std::vector<std::pair<std::string, std::string>>& ranges);
// The number of different points; infinite where a range is continuous.
double PointCount(const Space& space);

}  // namespace traind
