// Dates as people write them: 31.12.2024, 12/31/2024 2:30 PM, 31-Dec-2024, Dec 31, 2024.
#pragma once

#include <absl/strings/string_view.h>

namespace traind {

// How a column writes day and month where its dates do not tell.
enum class DateOrder { kMonthFirst, kDayFirst };

inline DateOrder OtherOrder(DateOrder order) {
  return order == DateOrder::kMonthFirst ? DateOrder::kDayFirst : DateOrder::kMonthFirst;
}

// Reads ISO 8601 (date_text.h), and:
// - day, month and year of four digits, separated by points (the day is first), slashes or hyphens
//   (in the given order); or the year first, then month and day, with slashes or points;
// - a day and an English month in either order, and a year of four digits, or of two from 1969 on,
//   separated by blanks, hyphens or a comma and a blank;
// - behind either, after a blank, a time HH:MM, with :SS and a fraction, and with AM or PM.
// seconds: since 1970, UTC. Returns false if the text is something else, or not a day of the
// calendar.
// Threads: safe.
bool ParseTime(absl::string_view text, DateOrder order, double& seconds);

}  // namespace traind
