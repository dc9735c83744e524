// Makes a table of CSV files: infers what each column is, and refuses what no
// model could learn from.
//
// A column is numeric if every value in the training file that is not missing is
// a number; where all are dates it becomes numbers that tell year, month, weekday
// and the like; else it is categorical. Constant columns, columns without values, free text
// (more than 10,000 distinct values, or nearly every row another one) are left
// out with a warning. Training rows without a target are left out with a warning.
#pragma once

#include <absl/status/statusor.h>

#include "common/data/table/table_source.h"
#include "common/data/table/table_writer.h"

namespace traind {

// Raised with every change of what the same bytes become.
inline constexpr int kTableReaderVersion = 3;

// content_sha256 of the schema is left empty.
// InvalidArgument: "FILE: row R (line L), column 'C': what" wherever a place can
// be named; else the file, or the column.
absl::StatusOr<TableRows> ReadTable(const TableSource& source);

}  // namespace traind
