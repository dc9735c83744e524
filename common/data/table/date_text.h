// Dates and times as they stand in data files.
#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>

namespace traind {

// Reads ISO 8601: YYYY-MM-DD, then maybe T or a blank and HH:MM, :SS, a fraction,
// and Z or +-HH:MM (or +-HHMM, +-HH). seconds: since 1970, UTC; a time without a
// zone is taken as UTC. Reduced dates are their first day: YYYY-MM, YYYY-Www (an ISO week) and
// YYYYQn or YYYY-Qn (a quarter). false: it is something else, or no day of the calendar.
bool ParseIsoTime(absl::string_view text, double& seconds);

// Proleptic Gregorian calendar, UTC.
struct CalendarTime {
  int year = 1970;
  int month = 1;        // 1-12
  int day = 1;          // 1-31
  int weekday = 3;      // 0: Monday
  int day_of_year = 1;  // 1-366
  int hour = 0;
  int minute = 0;
};
CalendarTime CalendarOf(double seconds);

}  // namespace traind
