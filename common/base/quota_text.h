// Quotas as people write them.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

namespace traind {

inline constexpr absl::Duration kShortestQuotaPeriod = absl::Minutes(1);
inline constexpr absl::Duration kLongestQuotaPeriod = absl::Hours(24 * 366);

struct QuotaText {
  absl::Duration allowance;
  absl::Duration period;
  bool rolling = true;
};

// Reads "45h per 7d" or "45h/7d". With ", fixed" behind it, periods follow each other instead of
// rolling. Errors: InvalidArgument, which quotes the text and says what is wrong with it.
absl::StatusOr<QuotaText> QuotaFromText(absl::string_view text);

}  // namespace traind
