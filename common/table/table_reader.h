// Makes a table of CSV files: infers what each column is, and refuses what no
// model could learn from.
//
// A column is numeric if every value in the training file that is not missing is
// a number, else categorical. Constant columns, columns without values, free text
// (more than 10,000 distinct values, or nearly every row another one) are left
// out with a warning. Training rows without a target are left out with a warning.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>

#include "common/table/table_writer.h"

namespace traind {

struct CsvFile {
  std::string name;         // what errors call it
  absl::string_view bytes;  // all of it; kept by the caller
};

struct TableSource {
  CsvFile train;
  CsvFile test;  // without a name: there is none
  std::string target;
  std::string id;  // empty: none
  TargetKind target_kind = TargetKind::kClasses;
  int threads = 1;  // that read; the table does not depend on them
};

// Raised with every change of what the same bytes become.
inline constexpr int kTableReaderVersion = 1;

// content_sha256 of the schema is left empty.
// InvalidArgument: "FILE: row R (line L), column 'C': what" wherever a place can
// be named; else the file, or the column.
absl::StatusOr<TableRows> ReadTable(const TableSource& source);

}  // namespace traind
