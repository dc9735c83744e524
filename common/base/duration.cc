#include "common/base/duration.h"

#include <absl/status/status.h>
#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace traind {
namespace {

constexpr absl::Duration kLongest = absl::Hours(24 * 36525);
constexpr char kWays[] = "write 90s, 15m, 1h30m, 2d, HH:MM:SS or D-HH:MM:SS";

struct Unit {
  absl::string_view name, word, short_word;
  absl::Duration length;

  // Whether the text is the unit's name, or its word in the singular or plural.
  bool Is(absl::string_view text) const {
    const absl::string_view one = absl::StripSuffix(text, "s");
    return text == name || one == word || one == short_word;
  }
};
// Larger units come first, which is the order in which they may follow each other.
constexpr Unit kUnits[] = {{"d", "day", "day", absl::Hours(24)},
                           {"h", "hour", "hr", absl::Hours(1)},
                           {"m", "minute", "min", absl::Minutes(1)},
                           {"s", "second", "sec", absl::Seconds(1)},
                           {"ms", "millisecond", "msec", absl::Milliseconds(1)}};

absl::Status Refuse(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' ", why));
}

bool IsDigits(absl::string_view text) {
  for (char c : text) {
    if (!absl::ascii_isdigit(c)) return false;
  }
  return !text.empty();
}

// Reads at most nine digits, so that no product below can overflow.
bool ReadNumber(absl::string_view text, int64_t& value) {
  return IsDigits(text) && text.size() <= 9 && absl::SimpleAtoi(text, &value);
}

absl::StatusOr<absl::Duration> ParseClock(absl::string_view text) {
  int64_t days = 0;
  absl::string_view clock = text;
  const size_t dash = text.find('-');
  const bool has_days = dash != absl::string_view::npos;
  if (has_days) {
    if (!ReadNumber(text.substr(0, dash), days)) {
      return Refuse(text, absl::StrCat("is not a duration; ", kWays));
    }
    clock = text.substr(dash + 1);
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(clock, ':');
  int64_t hours = 0, minutes = 0, seconds = 0;
  if (parts.size() == 2 && !has_days) {
    return Refuse(text, "could be minutes or hours; write HH:MM:SS");
  }
  if (parts.size() != 3 || !ReadNumber(parts[0], hours) || !ReadNumber(parts[1], minutes) ||
      !ReadNumber(parts[2], seconds) || parts[1].size() != 2 || parts[2].size() != 2) {
    return Refuse(text, absl::StrCat("is not a duration; ", kWays));
  }
  if (minutes > 59 || seconds > 59 || (has_days && hours > 23)) {
    return Refuse(text, has_days ? "is not a duration: hours go to 23, minutes and seconds to 59"
                                 : "is not a duration: minutes and seconds go to 59");
  }
  return absl::Hours(24) * days + absl::Hours(hours) + absl::Minutes(minutes) +
         absl::Seconds(seconds);
}

// Reads "12" or "12.5" and the letters behind it, and removes them from the front of rest, with
// the blanks around the letters.
absl::StatusOr<absl::Duration> ReadPart(absl::string_view text, absl::string_view& rest,
                                        size_t& next_unit) {
  size_t i = 0;
  while (i < rest.size() && (absl::ascii_isdigit(rest[i]) || rest[i] == '.')) ++i;
  const absl::string_view number = rest.substr(0, i);
  rest = absl::StripLeadingAsciiWhitespace(rest.substr(i));
  size_t j = 0;
  while (j < rest.size() && absl::ascii_isalpha(rest[j])) ++j;
  const absl::string_view unit = rest.substr(0, j);
  rest = absl::StripLeadingAsciiWhitespace(rest.substr(j));
  const size_t point = number.find('.');
  const absl::string_view whole = number.substr(0, point);
  const absl::string_view fraction =
      point == absl::string_view::npos ? "0" : number.substr(point + 1);
  int64_t units = 0, parts = 0;
  if (!ReadNumber(whole, units) || !ReadNumber(fraction, parts)) {
    return Refuse(text, absl::StrCat("is not a duration; ", kWays));
  }
  for (size_t u = 0; u < std::size(kUnits); ++u) {
    if (!kUnits[u].Is(unit)) continue;
    if (u < next_unit)
      return Refuse(text, "is not a duration: the larger unit comes first, each once");
    next_unit = u + 1;
    int64_t scale = 1;
    for (size_t k = 0; k < fraction.size(); ++k) scale *= 10;
    return kUnits[u].length * units + kUnits[u].length * parts / scale;
  }
  if (unit.empty()) {
    return Refuse(text, absl::StrCat("has no unit after ", number, "; ", kWays));
  }
  return Refuse(text,
                absl::StrCat("has the unit '", unit, "', which must be one of: d, h, m, s, ms"));
}

}  // namespace

absl::StatusOr<absl::Duration> DurationFromText(absl::string_view text) {
  if (absl::StripAsciiWhitespace(text).empty()) {
    return absl::InvalidArgumentError(absl::StrCat("an empty text is not a duration; ", kWays));
  }
  if (text.size() > 64) return absl::InvalidArgumentError("is too long for a duration");
  if (text[0] == '-') return Refuse(text, "is negative");
  double bare = 0;
  if (absl::ascii_isdigit(text[0]) && text.find_first_not_of("0123456789.") == text.npos &&
      absl::SimpleAtod(text, &bare)) {
    return Refuse(text, absl::StrCat("has no unit; write ", text, "s or ", text, "m"));
  }
  absl::Duration total;
  if (text.find(':') != absl::string_view::npos) {
    auto clock = ParseClock(text);
    if (!clock.ok()) return clock;
    total = *clock;
  } else {
    absl::string_view rest = absl::StripAsciiWhitespace(text);
    size_t next_unit = 0;
    while (!rest.empty()) {
      auto part = ReadPart(text, rest, next_unit);
      if (!part.ok()) return part;
      total += *part;
    }
  }
  if (total > kLongest) return Refuse(text, "is more than 100 years");
  return total;
}

std::string DurationToText(absl::Duration duration) {
  if (duration == absl::InfiniteDuration() || duration == -absl::InfiniteDuration()) return "never";
  if (duration < absl::ZeroDuration()) {
    // A negative duration that rounds to zero is written "0s", not "-0s".
    const std::string rest = DurationToText(-duration);
    return rest == "0s" ? rest : "-" + rest;
  }
  const int64_t ms = absl::ToInt64Milliseconds(duration);
  if (ms == 0) return "0s";
  if (ms < 1000) return absl::StrCat(ms, "ms");
  const int64_t s = ms / 1000;
  if (s < 60) return absl::StrCat(s, "s");
  if (s < 3600) return absl::StrFormat("%dm%02ds", s / 60, s % 60);
  if (s < 86400) return absl::StrFormat("%dh%02dm", s / 3600, s / 60 % 60);
  return absl::StrFormat("%dd%02dh", s / 86400, s / 3600 % 24);
}

absl::StatusOr<absl::Time> TimestampFromText(absl::string_view text) {
  // The format is checked here because Abseil also accepts words and unusual years.
  static constexpr absl::string_view kShape = "dddd-dd-ddTdd:dd:dd";
  bool shaped = text.size() >= kShape.size() && text.size() <= 40;
  for (size_t i = 0; shaped && i < kShape.size(); ++i) {
    shaped = kShape[i] == 'd' ? absl::ascii_isdigit(text[i]) : text[i] == kShape[i];
  }
  if (!shaped) {
    return Refuse(text.substr(0, 64),
                  "is not an RFC 3339 time; write it like 2026-12-01T18:00:00Z");
  }
  absl::string_view zone = text.substr(kShape.size());
  if (absl::StartsWith(zone, ".")) {
    const size_t end = zone.find_first_not_of("0123456789", 1);
    if (end == 1) return Refuse(text, "has no digit after the point");
    zone.remove_prefix(end == zone.npos ? zone.size() : end);
  }
  if (zone.empty()) return Refuse(text, "has no time zone; add Z, or an offset like +02:00");
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &error)) {
    return Refuse(text, absl::StrCat("is not an RFC 3339 time: ", error));
  }
  return time;
}

std::string TimestampToText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

}  // namespace traind
