// Texts and numbers as they stand in JSON.
#pragma once

#include <absl/strings/string_view.h>

#include <string>

namespace traind {

// Returns the text as a JSON string, with its quotes. Control characters are escaped so that none
// reaches a terminal.
std::string JsonString(absl::string_view text);
// Returns the shortest text that reads back as the same number; "NaN", "Infinity" and "-Infinity"
// are strings.
std::string JsonNumber(double value);

}  // namespace traind
