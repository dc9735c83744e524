#include "common/base/json_text.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <charconv>
#include <cmath>

#include "common/base/utf8.h"

namespace traind {

std::string JsonNumber(double value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  // This is the shortest text that reads back as the same number.
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  return std::string(digits, end);
}

std::string JsonString(absl::string_view text) {
  std::string shown = "\"";
  size_t bad = FirstNotUtf8(text);
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    const unsigned char next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    if (i == bad) {
      const size_t further = FirstNotUtf8(text.substr(i + 1));
      bad = further == absl::string_view::npos ? further : i + 1 + further;
      shown += c == 0 ? "\\u0000" : "\\ufffd";
    } else if (c == '"' || c == '\\') {
      shown.append(1, '\\').append(1, static_cast<char>(c));
    } else if (c == '\n') {
      shown += "\\n";
    } else if (c == '\t') {
      shown += "\\t";
    } else if (c < 0x20 || c == 0x7F) {
      absl::StrAppendFormat(&shown, "\\u%04x", c);
    } else if (c == 0xC2 && next >= 0x80 && next < 0xA0) {
      absl::StrAppendFormat(&shown, "\\u%04x", next);  // C1 control characters
      ++i;
    } else {
      shown += static_cast<char>(c);
    }
  }
  return shown + "\"";
}

bool NestedDeeper(absl::string_view json, int most) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') quoted = !quoted;
    if (quoted) {
      if (c == '\\') ++i;
    } else if (c == '[' || c == '{') {
      if (++depth > most) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace traind
