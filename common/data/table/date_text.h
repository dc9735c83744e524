// Dates and times as data files write them.
#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>

namespace traind {

// Reads ISO 8601: YYYY-MM-DD, optionally followed by T or a blank and HH:MM, :SS, a fraction, and Z
// or +-HH:MM (or +-HHMM, +-HH). seconds: since 1970, UTC; a time without a zone counts as UTC.
// Reduced dates stand for their first day: YYYY-MM, YYYY-Www (an ISO week) and YYYYQn or YYYY-Qn (a
// quarter). Returns false if the text is something else, or not a day of the calendar.
bool ParseIsoTime(absl::string_view text, double& seconds);

// Whether a text that ParseTime reads (written_date.h) has a time of day with a zone.
bool HasZone(absl::string_view text);

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
// Times of more than 1.9 billion years from 1970 count as that one.
CalendarTime CalendarOf(double seconds);

}  // namespace traind
