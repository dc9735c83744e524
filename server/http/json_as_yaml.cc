#include "server/http/json_as_yaml.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>

#include <cstdint>
#include <optional>

namespace traind {
namespace {

constexpr size_t kEscape = 6;  // characters of \uXXXX

// The number of \uXXXX at the beginning of the text.
std::optional<uint32_t> UnicodeEscape(absl::string_view text) {
  uint32_t code = 0;
  if (text.size() < kEscape || text.substr(0, 2) != "\\u") return std::nullopt;
  if (!absl::SimpleHexAtoi(text.substr(2, 4), &code)) return std::nullopt;
  return code;
}

// The character that two surrogates at the beginning of the text make.
std::optional<uint32_t> SurrogatePair(absl::string_view text) {
  const auto high = UnicodeEscape(text);
  if (!high || *high < 0xD800 || *high > 0xDBFF) return std::nullopt;
  const auto low = UnicodeEscape(text.substr(kEscape));
  if (!low || *low < 0xDC00 || *low > 0xDFFF) return std::nullopt;
  return 0x10000 + ((*high - 0xD800) << 10) + (*low - 0xDC00);
}

void AppendUtf8(uint32_t code, std::string* to) {
  to->push_back(static_cast<char>(0xF0 | code >> 18));
  to->push_back(static_cast<char>(0x80 | (code >> 12 & 0x3F)));
  to->push_back(static_cast<char>(0x80 | (code >> 6 & 0x3F)));
  to->push_back(static_cast<char>(0x80 | (code & 0x3F)));
}

}  // namespace

std::string JsonAsYaml(absl::string_view text) {
  const absl::string_view begin = absl::StripLeadingAsciiWhitespace(text);
  if (begin.empty() || (begin[0] != '{' && begin[0] != '[')) return std::string(text);
  std::string yaml;
  yaml.reserve(text.size());
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted && c == '\\' && i + 1 < text.size()) {
      if (const auto pair = SurrogatePair(text.substr(i))) {
        AppendUtf8(*pair, &yaml);
        i += 2 * kEscape - 1;
      } else {
        yaml.append({c, text[++i]});
      }
      continue;
    }
    yaml.push_back(c == '\t' && !quoted ? ' ' : c);
  }
  return yaml;
}

}  // namespace traind
