#include "common/base/quota_text.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include "common/base/duration.h"
#include "common/base/status_macros.h"

namespace traind {
absl::StatusOr<QuotaText> QuotaFromText(absl::string_view text) {
  QuotaText quota;
  const std::string quoted = absl::StrCat("'", text, "'");
  absl::string_view rest = absl::StripAsciiWhitespace(text);
  if (absl::ConsumeSuffix(&rest, "fixed")) {
    quota.rolling = false;
    rest = absl::StripTrailingAsciiWhitespace(rest);
    absl::ConsumeSuffix(&rest, ",");
  }
  size_t at = rest.find(" per "), length = 5;
  if (at == rest.npos) at = rest.find('/'), length = 1;
  if (at == rest.npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(quoted, " has no period; write it like '45h per 7d'"));
  }
  ASSIGN_OR_RETURN(quota.allowance,
                   DurationFromText(absl::StripAsciiWhitespace(rest.substr(0, at))));
  ASSIGN_OR_RETURN(quota.period,
                   DurationFromText(absl::StripAsciiWhitespace(rest.substr(at + length))));
  if (quota.period < kShortestQuotaPeriod || quota.period > kLongestQuotaPeriod) {
    return absl::InvalidArgumentError(absl::StrCat(quoted, ": a period is ",
                                                   DurationToText(kShortestQuotaPeriod), " to ",
                                                   DurationToText(kLongestQuotaPeriod)));
  }
  return quota;
}

}  // namespace traind
