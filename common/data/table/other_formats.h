// Recognizes files that users often have in place of a CSV file, and says how to write them as one.
//
// Threads: all functions are safe.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <string>

namespace traind {

// Whether the first bytes are those of a spreadsheet (.xlsx, .ods, .xls).
bool IsSpreadsheet(absl::string_view bytes);

bool IsParquet(absl::string_view bytes);

// Refuses by its first bytes a file in UTF-16, one that gzip has compressed, and a spreadsheet.
// InvalidArgument names the file and what to do.
absl::Status RefuseOtherFormats(absl::string_view bytes, absl::string_view name);

}  // namespace traind
