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

// "45h per 7d", "45h/7d"; with ", fixed" behind it periods follow each other. Errors:
// InvalidArgument, what is wrong, quoted.
absl::StatusOr<QuotaText> QuotaFromText(absl::string_view text);

}  // namespace traind
