// How much of a quota is used: what was used is kept in a few hundred parts of a period,
// so that neither many Attempts nor long periods make it slow.
// Threads: confined to one.
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/domain/quota.h"

namespace traind {

class QuotaUse {
 public:
  explicit QuotaUse(Quota quota) : quota_(std::move(quota)) {}
  const Quota& quota() const { return quota_; }

  // `slots` were held from start to end.
  void Add(absl::Time start, absl::Time end, double slots);
  // Device-seconds of the period that `now` is in. Rolling: the oldest part counts
  // whole, so at most 1/256 too much.
  double Used(absl::Time now);
  // Returns the seconds that are left when so many are used. Less than a second counts as nothing:
  // it is too short for any Job, and Jobs that are stopped in time leave as much.
  double Left(double used_s) const;
  // The first moment at which something is left, if nothing more is used.
  absl::Time FreeAt(absl::Time now);

 private:
  absl::Duration Width() const { return quota_.period / 256; }
  int64_t PartOf(absl::Time time) const;
  absl::Time PeriodStart(absl::Time now) const;

  Quota quota_;
  std::map<int64_t, double> parts_;  // device-seconds, by place in time
};

// 50, 80, 90: the highest that is reached; 0: none.
int WarningMark(double used_s, double allowance_s);

// "user local", "label team=vision".
std::string Text(const QuotaSubject& subject);
// "45h per 7d", "45h per 7d, fixed".
std::string Text(const Quota& quota);

}  // namespace traind
