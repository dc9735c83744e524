#include "common/data/table/row_order.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "common/base/status_macros.h"
#include "common/data/table/feature_columns.h"

namespace traind {
namespace {

std::string OfSeries(const RowOrderSource& source, size_t series) {
  return source.series.empty() ? "" : absl::StrCat(" of series '", source.names[series], "'");
}

int64_t FileRow(const RowOrderSource& source, size_t row) {
  return 1 + static_cast<int64_t>(source.file_rows.empty() ? row : source.file_rows[row]);
}

absl::Status CheckPresent(const RowOrderSource& source) {
  for (size_t row = 0; row < source.times.size(); ++row) {
    const bool no_time = std::isnan(source.times[row]);
    if (!no_time && (source.series_of.empty() || source.series_of[row] >= 0)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        Place(source.file, FileRow(source, row), no_time ? source.time : source.series), ": the ",
        no_time ? "time" : "series", " is missing"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RowOrder> OrderRows(const RowOrderSource& source,
                                   std::vector<std::string>& warnings) {
  RETURN_IF_ERROR(CheckPresent(source));
  const auto series_of = [&](size_t row) {
    return source.series_of.empty() ? size_t{0} : static_cast<size_t>(source.series_of[row]);
  };
  RowOrder order;
  order.rows.resize(source.times.size());
  std::iota(order.rows.begin(), order.rows.end(), uint32_t{0});
  std::stable_sort(order.rows.begin(), order.rows.end(), [&](uint32_t a, uint32_t b) {
    return std::make_pair(series_of(a), source.times[a]) <
           std::make_pair(series_of(b), source.times[b]);
  });
  order.ends.assign(source.names.size(), 0);
  uint32_t earlier = 0;  // the first row that is earlier than a row before it
  for (size_t i = 0; i < order.rows.size(); ++i) {
    const uint32_t row = order.rows[i];
    order.ends[series_of(row)] = i + 1;
    if (i == 0 || series_of(order.rows[i - 1]) != series_of(row)) continue;
    const uint32_t before = order.rows[i - 1];
    if (source.times[before] == source.times[row]) {
      return absl::InvalidArgumentError(
          absl::StrCat(Place(source.file, FileRow(source, row), source.time), ": row ", before + 1,
                       OfSeries(source, series_of(row)), " has the same time"));
    }
    // Row `before` is earlier in time, but comes later in the file.
    if (before > row && (earlier == 0 || before < earlier)) earlier = before;
  }
  // A series without rows ends where the one before it ends.
  for (size_t s = 1; s < order.ends.size(); ++s) {
    order.ends[s] = std::max(order.ends[s], order.ends[s - 1]);
  }
  if (earlier > 0) {
    warnings.push_back(
        absl::StrCat(Place(source.file, FileRow(source, earlier), source.time), ": this row",
                     OfSeries(source, series_of(earlier)),
                     " is earlier than one before it; rows were put in the order of their times"));
  }
  return order;
}

}  // namespace traind
