// Reads Parquet tables through a plug-in: a program that converts them to CSV (deploy/parquet.sh).
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <string>

#include "common/data/table/mapped_file.h"

namespace traind {

// FailedPrecondition: the plug-in is not installed; the message says how to install it.
absl::Status CheckParquetPlugin();

// Returns the table as CSV, with all digits. path: the name of `file` in errors. Errors: as above;
// InvalidArgument, with file and column: not a whole Parquet file, or a column that CSV cannot hold
// (lists, structs); DeadlineExceeded; ResourceExhausted: more than 16 GiB.
absl::StatusOr<std::string> ParquetToCsv(const std::string& path, const MappedFile& file,
                                         absl::Duration patience);

}  // namespace traind
