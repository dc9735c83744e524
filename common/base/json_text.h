// Texts and numbers as they stand in JSON.
#pragma once

#include <absl/strings/string_view.h>

#include <string>

namespace traind {

// Returns the text as a JSON string, with its quotes. Control characters are escaped so that none
// reaches a terminal; each byte that is not UTF-8 becomes U+FFFD.
std::string JsonString(absl::string_view text);
// Returns the shortest text that reads back as the same number; "NaN", "Infinity" and "-Infinity"
// are strings.
std::string JsonNumber(double value);

// Returns whether lists and objects of the JSON text are nested deeper than `most`. Readers copy
// and write what they have parsed level by level, so a text of 200,000 brackets ends the process.
bool NestedDeeper(absl::string_view json, int most);

}  // namespace traind
