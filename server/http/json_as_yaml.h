// JSON as text that a reader of YAML takes.
#pragma once

#include <absl/strings/string_view.h>

#include <string>

namespace traind {

// YAML contains JSON but for two things: tabs between values, which become blanks here, and
// characters that JSON writes as two surrogates ("\ud83d\ude00"), which become UTF-8. Any other
// text stays as it is.
std::string JsonAsYaml(absl::string_view text);

}  // namespace traind
