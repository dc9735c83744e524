// Checks whether bytes are UTF-8 text.
#pragma once

#include <absl/strings/string_view.h>

#include <string>

namespace traind {

// Returns the index of the first byte that is not UTF-8, or is zero; npos if there is none.
size_t FirstNotUtf8(absl::string_view bytes);

// Returns the length of the well-formed character that `bytes` begin with; 0: they begin with none.
size_t Utf8Length(absl::string_view bytes);

// Returns what is wrong with the byte, and how to mend it.
std::string NotUtf8Text(unsigned char byte);

}  // namespace traind
