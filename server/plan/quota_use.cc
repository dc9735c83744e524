#include "server/plan/quota_use.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>

#include "common/base/duration.h"

namespace traind {

int64_t QuotaUse::PartOf(absl::Time time) const {
  return static_cast<int64_t>(std::floor(absl::FDivDuration(time - quota_.since, Width())));
}

absl::Time QuotaUse::PeriodStart(absl::Time now) const {
  if (quota_.rolling) return now - quota_.period;
  return quota_.since +
         std::floor(absl::FDivDuration(now - quota_.since, quota_.period)) * quota_.period;
}

void QuotaUse::Add(absl::Time start, absl::Time end, double slots) {
  if (end <= start || slots <= 0) return;
  // Use that is older than a period does not count.
  start = std::max(start, end - quota_.period);
  for (int64_t part = PartOf(start); part <= PartOf(end); ++part) {
    const absl::Time begin = quota_.since + static_cast<double>(part) * Width();
    const absl::Duration held = std::min(end, begin + Width()) - std::max(start, begin);
    if (held > absl::ZeroDuration()) parts_[part] += slots * absl::ToDoubleSeconds(held);
  }
}

double QuotaUse::Used(absl::Time now) {
  const int64_t first = PartOf(PeriodStart(now));
  parts_.erase(parts_.begin(), parts_.lower_bound(first));
  double used = 0;
  for (const auto& [part, seconds] : parts_) used += seconds;
  return used;
}

double QuotaUse::Left(double used_s) const {
  const double left_s = absl::ToDoubleSeconds(quota_.allowance) - used_s;
  return left_s < 1 ? 0 : left_s;
}

absl::Time QuotaUse::FreeAt(absl::Time now) {
  double used = Used(now);
  if (Left(used) > 0) return now;
  if (!quota_.rolling) return PeriodStart(now) + quota_.period;
  for (const auto& [part, seconds] : parts_) {
    used -= seconds;
    if (Left(used) > 0) {
      return quota_.since + static_cast<double>(part + 1) * Width() + quota_.period;
    }
  }
  return now + quota_.period;
}

int WarningMark(double used_s, double allowance_s) {
  for (const int mark : {90, 80, 50}) {
    if (used_s * 100 >= mark * allowance_s) return mark;
  }
  return 0;
}

std::string Text(const QuotaSubject& subject) {
  return subject.label.empty() ? absl::StrCat("user ", subject.owner)
                               : absl::StrCat("label ", subject.label);
}

std::string Text(const Quota& quota) {
  return absl::StrCat(DurationToText(quota.allowance), " per ", DurationToText(quota.period),
                      quota.rolling ? "" : ", fixed");
}

}  // namespace traind
