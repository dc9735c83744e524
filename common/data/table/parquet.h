// Parquet tables, by way of a plug-in: a program that makes CSV of them (deploy/parquet.sh).
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <string>

namespace traind {

bool IsParquet(absl::string_view bytes);

// FailedPrecondition: the plug-in is not installed; says how to install it.
absl::Status CheckParquetPlugin();

// The table as CSV, with every digit. Errors: as above; InvalidArgument: no whole Parquet
// file, or a column that no CSV has (lists, structs): names file and column;
// DeadlineExceeded; ResourceExhausted: more than 16 GiB.
absl::StatusOr<std::string> ParquetToCsv(const std::string& path, absl::Duration patience);

}  // namespace traind
