// Characters and the marks that belong to them, as the `tokenizers` library has them.
#pragma once

#include <absl/strings/string_view.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace traind {

// Whether it belongs to a word that it stands beside: letters, numbers, marks and '_'.
bool IsOfWord(uint32_t c);

// Returns the bytes of the text's first grapheme, where it has fewer than six; of a longer one the
// part may be shorter. REQUIRES: text is not empty.
size_t FirstGrapheme(absl::string_view text);

// Returns the text with letters and marks composed (Unicode's form C).
std::string Composed(absl::string_view text);

}  // namespace traind
