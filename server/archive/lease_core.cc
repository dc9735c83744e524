#include "server/archive/lease_core.h"

#include <algorithm>

namespace traind {

void LeaseTenure::Renewed(absl::Duration begun) { begun_ = std::max(begun_, begun); }

LeaseTenure::Act LeaseTenure::Next(absl::Duration now) {
  // Also a clock that went back is no reason to go on for longer.
  fenced_ = fenced_ || now - begun_ >= times_.FenceAfter();
  if (fenced_) return Act::kFence;
  return now - begun_ >= times_.RenewAfter() ? Act::kRenew : Act::kWait;
}

absl::Duration LeaseTenure::WakeAt() const { return begun_ + times_.RenewAfter(); }

void LeaseWatch::Saw(int64_t epoch, const std::optional<LeaseNote>& lease, absl::Duration now) {
  const bool same = epoch == epoch_ && lease == lease_;
  if (!same) since_ = now;
  epoch_ = epoch;
  lease_ = lease;
}

bool LeaseWatch::MayTakeOver(absl::Duration now) const {
  if (epoch_ == 0) return true;  // nobody has had the archive
  if (lease_ && (lease_->released || lease_->holder == holder_)) return true;
  // Who has just begun an epoch may not have written its lease yet.
  const absl::Duration ttl = lease_ ? lease_->ttl : unknown_ttl_;
  // From the first sight of it, which was not before it was written.
  return now - since_ >= ttl;
}

}  // namespace traind
