// Durations and points in time as people write and read them.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <string>

namespace traind {

// Reads "90s", "15m", "1h30m", "2d", "500ms", "1.5h" (units d h m s ms, or words such as minutes
// and min; the larger ones first, each at most once; blanks may stand between numbers and units),
// or Slurm's "HH:MM:SS" and "D-HH:MM:SS". A duration must not be negative and is at most 100 years.
// A bare number is refused, because some tools read it as minutes and others as seconds. Errors:
// InvalidArgument, whose text begins with the quoted input: "'90' has no unit; write 90s or 90m".
absl::StatusOr<absl::Duration> DurationFromText(absl::string_view text);

// Writes at most two units, rounded down: "500ms", "41s", "1m05s", "1h02m", "2d03h"; "never" for an
// infinite duration. DurationFromText reads all of them but "never".
std::string DurationToText(absl::Duration duration);

// Reads RFC 3339 with a time zone: "2026-12-01T18:00:00Z", "2026-12-01T19:00:00.5+01:00". Errors:
// InvalidArgument, as above.
absl::StatusOr<absl::Time> TimestampFromText(absl::string_view text);

// Writes RFC 3339 in UTC, with milliseconds: "2026-12-01T18:00:00.000Z".
std::string TimestampToText(absl::Time time);

}  // namespace traind
