// Numbers as much of Europe writes them: 0,5 and 1.234,5, mostly in files whose fields semicolons
// or tabs separate.
#pragma once

#include <absl/strings/string_view.h>

#include <optional>
#include <string>

namespace traind {

struct DecimalPoints {
  std::string bytes;  // the file's, as long as it was: rows, lines and offsets stay
  std::string first;  // the first number with a comma, as the file writes it
};

// Rewrites all fields that are wholly such numbers, or amounts of them (number.h): 0,5 to 0.5,
// and 1.234,5, 1 234,5 and 1.234 to the number without separators of thousands, blanks behind it.
// Nothing if the beginning of the file has no number with a decimal comma, or one with a decimal
// point that cannot separate thousands; where commas separate the fields, neither commas that may
// separate thousands (1,234) nor any points will do. Threads: safe, pure.
std::optional<DecimalPoints> WithDecimalPoints(absl::string_view bytes, char delimiter);

}  // namespace traind
