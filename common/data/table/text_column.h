// One column of a table, as it is written.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>
#include <vector>

#include "common/data/table/csv_file.h"

namespace traind {

// Returns the column's fields, without those of rows that are too short for it. NotFound: the table
// has no such column; InvalidArgument: it is no table.
absl::StatusOr<std::vector<std::string>> ReadTextColumn(const CsvFile& table,
                                                        absl::string_view column);

}  // namespace traind
