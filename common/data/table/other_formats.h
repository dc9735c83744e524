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

// Tells how to write a number or a date that is written for people: "1000" for '1,000',
// "5, without %" for '5%', "5" for '', a form for '01.02.2024'. Returns "" for any
// other text.
std::string HowToWrite(absl::string_view text);

}  // namespace traind
