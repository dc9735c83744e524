// Rows of a file in the order of (series, time).
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace traind {

struct RowOrderSource {
  std::string file;                       // what errors call it
  std::string time;                       // name of the column
  std::string series;                     // name of the column; empty: all rows are one series
  std::vector<double> times;              // [row]
  std::vector<int32_t> series_of;         // [row]; empty: all 0
  std::vector<uint32_t> file_rows;        // where in the file each row is; empty: row i is the i-th
  std::vector<std::string> names = {""};  // of the series
};

struct RowOrder {
  std::vector<uint32_t> rows;  // indices of the source's
  std::vector<uint64_t> ends;  // [series]: the place in rows behind each one's last
};

// Adds a warning where a series' rows are not in the order of their times.
// InvalidArgument names the row that lacks its time or series, or has the time of
// another row of its series.
absl::StatusOr<RowOrder> OrderRows(const RowOrderSource& source,
                                   std::vector<std::string>& warnings);

}  // namespace traind
