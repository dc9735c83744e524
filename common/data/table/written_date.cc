#include "common/data/table/written_date.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_format.h>
#include <absl/strings/strip.h>

#include <string>
#include <utility>

#include "common/data/table/date_text.h"

namespace traind {
namespace {

constexpr absl::string_view kMonths[] = {"january",   "february", "march",    "april",
                                         "may",       "june",     "july",     "august",
                                         "september", "october",  "november", "december"};
constexpr size_t kShortMonth = 3;  // letters

struct Day {
  int year = 0, month = 0, day = 0;
};

// Takes letters, digits and separators from the front of a text.
class Words {
 public:
  explicit Words(absl::string_view text) : text_(text) {}

  absl::string_view rest() const { return text_; }
  // One or two digits, or as many as `digits`. 0: there are none, or more.
  int Number(size_t digits = 2) {
    size_t count = 0;
    int value = 0;
    for (; count < text_.size() && absl::ascii_isdigit(text_[count]); ++count) {
      if (count == digits) return 0;
      value = value * 10 + (text_[count] - '0');
    }
    if (count == 0 || (digits > 2 && count != digits)) return 0;
    text_.remove_prefix(count);
    return value;
  }
  // A month's name, whole or its first three letters; 0: there is none.
  int Month() {
    size_t count = 0;
    while (count < text_.size() && absl::ascii_isalpha(text_[count])) ++count;
    const std::string word = absl::AsciiStrToLower(text_.substr(0, count));
    text_.remove_prefix(count);
    if (word.size() < kShortMonth) return 0;
    int number = 0;
    for (const absl::string_view month : kMonths) {
      ++number;
      if (word == month || word == month.substr(0, kShortMonth)) return number;
    }
    return 0;
  }
  // One of the separators; '\0': there is none.
  char Separator(absl::string_view separators) {
    if (text_.empty() || separators.find(text_[0]) == separators.npos) return '\0';
    const char c = text_[0];
    text_.remove_prefix(1);
    if (c == ',') absl::ConsumePrefix(&text_, " ");
    return c;
  }
  // Two digits count from 1969 to 2068, as strptime reads them.
  int Year(bool short_too) {
    constexpr int kPivot = 69, kCentury = 1900;
    Words four = *this;
    if (const int year = four.Number(4); year > 0) {
      *this = four;
      return year;
    }
    if (!short_too || text_.size() < 2 || !absl::ascii_isdigit(text_[1])) return 0;
    const bool some = absl::ascii_isdigit(text_[0]);
    const int year = Number();
    if (!some || (!text_.empty() && absl::ascii_isdigit(text_[0]))) return 0;
    return year + kCentury + (year < kPivot ? 100 : 0);
  }

 private:
  absl::string_view text_;
};

// 31.12.2024, 12/31/2024, 31-12-2024, 2024/12/31.
bool Numeric(Words& words, DateOrder order, Day& day) {
  Words from_year = words;
  if (const int year = from_year.Number(4); year > 0) {
    const char separator = from_year.Separator("/.");
    day = {year, from_year.Number(), 0};
    if (separator == '\0' || from_year.Separator({&separator, 1}) == '\0') return false;
    day.day = from_year.Number();
    words = from_year;
    return true;
  }
  day.day = words.Number();
  const char separator = words.Separator("./-");
  day.month = words.Number();
  if (separator == '\0' || words.Separator({&separator, 1}) == '\0') return false;
  day.year = words.Year(/*short_too=*/false);
  if (separator != '.' && order == DateOrder::kMonthFirst) std::swap(day.day, day.month);
  return day.year > 0;
}

// 31-Dec-2024, 31 December 24, Dec 31, 2024.
bool Named(Words& words, Day& day) {
  const bool month_first = !words.rest().empty() && absl::ascii_isalpha(words.rest()[0]);
  if (month_first) {
    day.month = words.Month();
    if (words.Separator(" -") == '\0') return false;
    day.day = words.Number();
  } else {
    day.day = words.Number();
    if (words.Separator(" -") == '\0') return false;
    day.month = words.Month();
  }
  if (words.Separator(" -,") == '\0') return false;
  day.year = words.Year(/*short_too=*/true);
  return day.month > 0 && day.year > 0;
}

// Returns "THH:MM..." for a time behind a date, "" for nothing; sets `wrong` for anything else.
std::string IsoTimeOf(absl::string_view text, bool& wrong) {
  if (text.empty()) return "";
  wrong = !absl::ConsumePrefix(&text, " ");
  const bool pm = absl::EndsWithIgnoreCase(text, "pm");
  const bool twelve = pm || absl::EndsWithIgnoreCase(text, "am");
  if (twelve) text = absl::StripTrailingAsciiWhitespace(text.substr(0, text.size() - 2));
  const size_t colon = text.find(':');
  Words words(text);
  int hour = words.Number();
  const bool digits = colon > 0 && absl::ascii_isdigit(text.empty() ? 'x' : text[0]);
  if (colon == text.npos || words.rest().size() + colon != text.size() || !digits) wrong = true;
  if (twelve) {
    wrong |= hour < 1 || hour > 12;
    hour = hour % 12 + (pm ? 12 : 0);
  }
  return wrong ? "" : absl::StrFormat("T%02d%s", hour, text.substr(colon));
}

}  // namespace

bool ParseTime(absl::string_view text, DateOrder order, double& seconds) {
  if (ParseIsoTime(text, seconds)) return true;
  constexpr size_t kLongest = 40;
  if (text.size() > kLongest) return false;
  Day day;
  Words words(text);
  if (!Numeric(words, order, day)) {
    words = Words(text);
    if (!Named(words, day)) return false;
  }
  bool wrong = false;
  const std::string time = IsoTimeOf(words.rest(), wrong);
  if (wrong) return false;
  return ParseIsoTime(absl::StrFormat("%04d-%02d-%02d%s", day.year, day.month, day.day, time),
                      seconds);
}

}  // namespace traind
