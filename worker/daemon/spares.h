// How many idle Ranks to keep warm.
#pragma once

#include <absl/time/time.h>

#include <algorithm>
#include <cstdint>

namespace traind::worker {

// An idle Rank takes 58 MB of its own (LibTorch's relocations), 115 MB resident.
inline constexpr int64_t kSpareBytes = 120 << 20;
// Left to those who train.
inline constexpr int64_t kMemoryReserve = 1 << 30;

// Spares to keep where `busy` of `slots` CPU slots train: one for each idle slot,
// and while something trains one more, so that a dead Rank is replaced at once. As
// many as the memory left holds; but the first idle slot's always.
inline int WantedSpares(int slots, int busy, int64_t available_bytes) {
  const int idle = std::max(0, slots - busy);
  const int wanted = idle + (busy > 0 ? 1 : 0);
  const int64_t fits = std::max<int64_t>(0, (available_bytes - kMemoryReserve) / kSpareBytes);
  return std::max(static_cast<int>(std::min<int64_t>(wanted, fits)), std::min(idle, 1));
}

// Time to wait before the next start after `deaths` Ranks in a row died idle.
inline absl::Duration SpareBackoff(int deaths) {
  if (deaths <= 0) return absl::ZeroDuration();
  return std::min(absl::Minutes(1), absl::Milliseconds(250) * (int64_t{1} << std::min(deaths, 10)));
}

}  // namespace traind::worker
