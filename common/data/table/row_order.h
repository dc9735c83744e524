// Sorts rows of a file by (series, time).
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace traind {

struct RowOrderSource {
  std::string file;                 // what errors call it
  std::string time;                 // name of the time column
  std::string series;               // name of the series column; empty: all rows are one series
  std::vector<double> times;        // [row]
  std::vector<int32_t> series_of;   // [row]; empty: all 0
  std::vector<uint32_t> file_rows;  // [row]: its place in the file; empty: row i is the i-th
  std::vector<std::string> names = {""};  // names of the series
};

struct RowOrder {
  std::vector<uint32_t> rows;  // indices of the source's rows
  std::vector<uint64_t> ends;  // [series]: the end of its rows in `rows`
};

// Adds a warning if the rows of a series are not sorted by time. InvalidArgument names a row that
// lacks its time or series, or has the same time as another row of its series.
absl::StatusOr<RowOrder> OrderRows(const RowOrderSource& source,
                                   std::vector<std::string>& warnings);

}  // namespace traind
