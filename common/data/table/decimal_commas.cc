#include "common/data/table/decimal_commas.h"

#include <absl/strings/match.h>

#include <algorithm>
#include <functional>

#include "common/data/table/number.h"

namespace traind {
namespace {

constexpr size_t kLookBytes = 256 << 10;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

size_t SkipDigits(absl::string_view text, size_t at) {
  while (at < text.size() && IsDigit(text[at])) ++at;
  return at;
}

// How a field that is a number writes it.
struct Form {
  bool comma = false;   // it has a decimal comma
  bool either = false;  // which may separate thousands as well: 1,234
  bool groups = false;  // all its points may separate thousands
  bool point = false;   // it has a point that cannot
  bool marks = false;   // it has other marks between thousands: 1 234,5
};

// Whether `text` from `at` on is nothing, or an exponent.
bool EndsNumber(absl::string_view text, size_t at) {
  if (at == text.size()) return true;
  if (text[at] != 'e' && text[at] != 'E') return false;
  if (++at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
  return at < text.size() && SkipDigits(text, at) == text.size();
}

// Nothing: the text is no number.
std::optional<Form> FormOf(absl::string_view text) {
  constexpr size_t kGroup = 3;  // digits
  Form form;
  const size_t begin = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  size_t at = SkipDigits(text, begin);
  if (at == begin) return std::nullopt;
  const size_t whole = at - begin;
  absl::string_view mark = text.substr(at, at < text.size() ? ThousandsMark(text, at) : 0);
  while (!mark.empty() && absl::StartsWith(text.substr(at), mark)) {
    const size_t end = SkipDigits(text, at + mark.size());
    if (end - at - mark.size() != kGroup || whole > kGroup || text[begin] == '0') {
      return std::nullopt;
    }
    form.marks = true;
    at = end;
  }
  while (at < text.size() && text[at] == '.') {
    const size_t end = SkipDigits(text, at + 1);
    const bool group = end - at - 1 == kGroup && whole <= kGroup && !form.point && !form.marks &&
                       text[begin] != '0';           // 0.125
    if (!group && form.groups) return std::nullopt;  // a date, or a version
    if (form.point) return std::nullopt;
    (group ? form.groups : form.point) = true;
    at = end;
  }
  if (at < text.size() && text[at] == ',' && !form.point) {
    const size_t end = SkipDigits(text, at + 1);
    if (end == at + 1) return std::nullopt;
    form.comma = true;
    form.either = end - at - 1 == kGroup && whole <= kGroup && !form.groups && !form.marks &&
                  text[begin] != '0';
    at = end;
  }
  if (!EndsNumber(text, at)) return std::nullopt;
  return form;
}

struct Field {
  size_t begin = 0, end = 0;  // with its quotes and blanks
  absl::string_view text;     // without them
};

bool IsBlank(char c) { return c == ' '; }

size_t EndOfField(absl::string_view bytes, size_t at, char delimiter) {
  if (bytes[at] == '"') {
    for (++at; at < bytes.size(); ++at) {
      if (bytes[at] != '"') continue;
      if (at + 1 == bytes.size() || bytes[at + 1] != '"') break;
      ++at;
    }
  }
  const char ends[] = {delimiter, '\r', '\n', '\0'};
  return std::min(bytes.size(), bytes.find_first_of(ends, at));
}

// Calls `visit` for each field until it returns false.
void ForEachField(absl::string_view bytes, char delimiter,
                  const std::function<bool(const Field&)>& visit) {
  for (size_t at = 0; at < bytes.size();) {
    Field field;
    field.begin = at;
    field.end = EndOfField(bytes, at, delimiter);
    absl::string_view text = bytes.substr(field.begin, field.end - field.begin);
    while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
    while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
      text = text.substr(1, text.size() - 2);
    }
    field.text = text;
    if (!visit(field)) return;
    at = field.end + 1;
  }
}

// Returns the first number with a decimal comma; "" if the numbers do not have such commas. Where
// commas separate the fields, too, they must be told from commas between thousands, and no number
// may have a point.
std::string FirstOf(absl::string_view bytes, char delimiter) {
  const bool strict = delimiter == ',';
  std::string first;
  ForEachField(bytes, delimiter, [&](const Field& field) {
    const auto form = FormOf(WithoutUnit(field.text));
    if (!form) return true;
    if (form->point || (strict && form->groups)) {
      first.clear();
      return false;
    }
    if (form->comma && !(strict && form->either) && first.empty()) first = std::string(field.text);
    return true;
  });
  return first;
}

// Writes the number over the whole field, blanks behind it.
void Rewrite(const Field& field, std::string& bytes) {
  size_t to = field.begin;
  for (size_t at = 0; at < field.text.size();) {
    const size_t mark = ThousandsMark(field.text, at);
    const char c = field.text[at];
    at += std::max<size_t>(mark, 1);
    if (mark == 0 && c != '.') bytes[to++] = c == ',' ? '.' : c;
  }
  std::fill(bytes.begin() + static_cast<ptrdiff_t>(to),
            bytes.begin() + static_cast<ptrdiff_t>(field.end), ' ');
}

}  // namespace

std::optional<DecimalPoints> WithDecimalPoints(absl::string_view bytes, char delimiter) {
  DecimalPoints points;
  points.first = FirstOf(bytes.substr(0, kLookBytes), delimiter);
  if (points.first.empty()) return std::nullopt;
  points.bytes = std::string(bytes);
  // The fields are views of the original: a rewritten one is never read again.
  ForEachField(bytes, delimiter, [&](const Field& field) {
    const auto form = FormOf(WithoutUnit(field.text));
    if (form && (form->comma || form->groups)) Rewrite(field, points.bytes);
    return true;
  });
  return points;
}

}  // namespace traind
