// Recognizes files that users often have in place of a CSV file, and says how to write them as one.
//
// Threads: all functions are safe.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <string>

namespace traind {

// Refuses by its first bytes a file in UTF-16, one that gzip has compressed, and a spreadsheet
// (.xlsx, .ods, .xls). InvalidArgument names the file and what to do.
absl::Status RefuseOtherFormats(absl::string_view bytes, absl::string_view name);

}  // namespace traind
