// Makes a table from CSV files: infers the type of each column, and refuses data that no model
// could learn from.
//
// A column is numeric if every value of the training file that is not missing is a number. If all
// values are dates, it becomes numbers for year, month, weekday and the like. Else it is
// categorical, with at most its 10,000 most frequent values as categories; a warning tells of more.
// Where it has many different texts, their numbers, lengths and frequent words are features, too.
// Constant columns, columns without values and free text (a different value in nearly every row)
// are left out with a warning, and so are training rows without a target.
#pragma once

#include <absl/status/statusor.h>

#include "common/data/table/table_source.h"
#include "common/data/table/table_writer.h"

namespace traind {

// Raise this with every change of the table that the same bytes become.
inline constexpr int kTableReaderVersion = 10;

// The schema's content_sha256 is left empty. InvalidArgument: "FILE: row R (line L), column 'C':
// what" wherever a place can be named; else the message names the file or the column.
absl::StatusOr<TableRows> ReadTable(const TableSource& source);

}  // namespace traind
