// Whether bytes are text.
#pragma once

#include <absl/strings/string_view.h>

#include <string>

namespace traind {

// Where the first byte is that is not UTF-8, or is zero; npos: nowhere.
size_t FirstNotUtf8(absl::string_view bytes);

// What is wrong with it, and what to do about it.
std::string NotUtf8Text(unsigned char byte);

}  // namespace traind
