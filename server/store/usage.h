// The quota usage of an ended Attempt, which is the same for every store.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "server/domain/job.h"
#include "server/domain/quota.h"

namespace traind {

// Returns nullopt if the Attempt held no slots, or still runs.
inline std::optional<AttemptUsage> UsageOf(const Job& job, const Attempt& attempt) {
  if (attempt.kind != TaskKind::kTrain || attempt.ended_at == absl::InfiniteFuture() ||
      attempt.slots.empty()) {
    return std::nullopt;
  }
  return AttemptUsage{job.owner, job.spec.labels, attempt.started_at, attempt.ended_at,
                      SlotCount(attempt)};
}

// For so long usage counts in an owner's share of the machines (server/schedule/owner_shares.h):
// two half-lives.
inline constexpr absl::Duration kShareMemory = absl::Hours(24 * 14);

// Returns the earliest time from which Attempts count for one of the quotas, or for shares.
inline absl::Time UsageStart(const std::vector<Quota>& quotas, absl::Time now) {
  absl::Duration longest = kShareMemory;
  for (const Quota& quota : quotas) longest = std::max(longest, quota.period);
  return now - longest;
}

}  // namespace traind
