#include "common/data/table/date_text.h"

#include <cmath>

namespace traind {
namespace {

constexpr int64_t kSecondsPerDay = 86'400;

// Returns the days since 1970-01-01 (Howard Hinnant, "chrono-compatible low-level date
// algorithms").
int64_t DaysFromCivil(int64_t year, int64_t month, int64_t day) {
  year -= month <= 2;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t of_era = year - era * 400;
  const int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146'097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719'468;
}

// Reads digits and separators from the front of a text.
class Scanner {
 public:
  explicit Scanner(absl::string_view text) : text_(text) {}

  bool AtEnd() const { return text_.empty(); }
  bool Eat(char c) {
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  // Reads exactly `count` digits that make a number from `least` to `most`.
  bool Digits(size_t count, int least, int most, int& value) {
    if (text_.size() < count) return false;
    value = 0;
    for (size_t i = 0; i < count; ++i) {
      const auto digit = static_cast<unsigned char>(text_[i] - '0');
      if (digit > 9) return false;
      value = value * 10 + digit;
    }
    text_.remove_prefix(count);
    return value >= least && value <= most;
  }
  // Reads at least one digit; digits after the ninth are left.
  bool Fraction(double& value) {
    double unit = 0.1;
    size_t count = 0;
    for (; count < text_.size() && count < 9; ++count, unit /= 10) {
      const auto digit = static_cast<unsigned char>(text_[count] - '0');
      if (digit > 9) break;
      value += digit * unit;
    }
    text_.remove_prefix(count);
    return count > 0;
  }

 private:
  absl::string_view text_;
};

int DaysOfMonth(int year, int month) {
  static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return kDays[month - 1] + (month == 2 && leap);
}

// Reads Z, or an offset from UTC into seconds.
bool ParseZone(Scanner& scan, double& offset) {
  if (scan.Eat('Z')) return true;
  const bool minus = scan.Eat('-');
  if (!minus && !scan.Eat('+')) return false;
  int hours = 0, minutes = 0;
  if (!scan.Digits(2, 0, 23, hours)) return false;
  const bool colon = scan.Eat(':');
  if ((colon || !scan.AtEnd()) && !scan.Digits(2, 0, 59, minutes)) return false;
  offset = (minus ? -1 : 1) * (hours * 3600 + minutes * 60);
  return true;
}

// Returns the Monday of week 1 of an ISO 8601 year, the week that contains January 4.
int64_t FirstMonday(int64_t year) {
  const int64_t january_4 = DaysFromCivil(year, 1, 4);
  return january_4 - ((january_4 + 3) % 7 + 7) % 7;
}

// Reads the rest of YYYYQn, YYYY-Qn or YYYY-Www into the first day of the quarter or the ISO week.
// Returns false if it is neither.
bool ParseQuarterOrWeek(Scanner scan, int year, int64_t& days) {
  const bool dash = scan.Eat('-');
  if (int quarter; scan.Eat('Q')) {
    if (!scan.Digits(1, 1, 4, quarter) || !scan.AtEnd()) return false;
    days = DaysFromCivil(year, 3 * quarter - 2, 1);
    return true;
  }
  int week;
  if (!dash || !scan.Eat('W') || !scan.Digits(2, 1, 53, week) || !scan.AtEnd()) return false;
  days = FirstMonday(year) + 7 * (week - 1);
  return days < FirstMonday(year + 1);
}

}  // namespace

bool ParseIsoTime(absl::string_view text, double& seconds) {
  Scanner scan(text);
  int year, month, day = 1;
  if (!scan.Digits(4, 0, 9999, year)) return false;
  if (int64_t days; ParseQuarterOrWeek(scan, year, days)) {
    seconds = static_cast<double>(days * kSecondsPerDay);
    return true;
  }
  if (!scan.Eat('-') || !scan.Digits(2, 1, 12, month)) return false;
  if (!scan.AtEnd() &&
      (!scan.Eat('-') || !scan.Digits(2, 1, 31, day) || day > DaysOfMonth(year, month))) {
    return false;
  }
  seconds = static_cast<double>(DaysFromCivil(year, month, day) * kSecondsPerDay);
  if (scan.AtEnd()) return true;
  if (!scan.Eat('T') && !scan.Eat(' ')) return false;
  int hour, minute, second = 0;
  if (!scan.Digits(2, 0, 23, hour) || !scan.Eat(':') || !scan.Digits(2, 0, 59, minute)) {
    return false;
  }
  double fraction = 0;
  if (scan.Eat(':')) {
    if (!scan.Digits(2, 0, 60, second)) return false;  // 60: a leap second
    if (scan.Eat('.') && !scan.Fraction(fraction)) return false;
  }
  double offset = 0;
  if (!scan.AtEnd() && !ParseZone(scan, offset)) return false;
  if (!scan.AtEnd()) return false;
  seconds += hour * 3600 + minute * 60 + second + fraction - offset;
  return true;
}

bool HasZone(absl::string_view text) {
  const size_t colon = text.find(':');
  return colon != text.npos && text.find_first_of("Z+-", colon) != text.npos;
}

CalendarTime CalendarOf(double seconds) {
  constexpr double kMost = 6e16;  // years beyond it are no int
  const bool in_range = std::fabs(seconds) <= kMost;
  const auto whole = static_cast<int64_t>(in_range      ? std::floor(seconds)
                                          : seconds > 0 ? kMost
                                                        : -kMost);
  int64_t days = whole / kSecondsPerDay;
  int64_t rest = whole % kSecondsPerDay;
  if (rest < 0) {
    rest += kSecondsPerDay;
    --days;
  }
  const int64_t z = days + 719'468;
  const int64_t era = (z >= 0 ? z : z - 146'096) / 146'097;
  const int64_t of_era = z - era * 146'097;
  const int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36'524 - of_era / 146'096) / 365;
  const int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t shifted = (5 * of_year + 2) / 153;
  CalendarTime time;
  time.day = static_cast<int>(of_year - (153 * shifted + 2) / 5 + 1);
  time.month = static_cast<int>(shifted < 10 ? shifted + 3 : shifted - 9);
  const int64_t year = year_of_era + era * 400 + (time.month <= 2);
  time.year = static_cast<int>(year);
  time.weekday = static_cast<int>(((days + 3) % 7 + 7) % 7);
  time.day_of_year = static_cast<int>(days - DaysFromCivil(year, 1, 1) + 1);
  time.hour = static_cast<int>(rest / 3600);
  time.minute = static_cast<int>(rest % 3600 / 60);
  return time;
}

}  // namespace traind
