#include "server/schedule/owner_shares.h"

#include <algorithm>
#include <cmath>

namespace traind {
namespace {

double EpochSeconds(absl::Time time) { return absl::ToDoubleSeconds(time - absl::UnixEpoch()); }

}  // namespace

double OwnerShares::Decayed(const Use& use, absl::Time now) const {
  if (use.ended_s == 0) return 0;
  return use.ended_s * std::exp2(-absl::FDivDuration(now - use.at, half_life_));
}

void OwnerShares::Began(const std::string& owner, int slots, absl::Time at) {
  Use& use = owners_[owner];
  use.slots += slots;
  use.began_s += slots * EpochSeconds(at);
}

void OwnerShares::Ended(const std::string& owner, int slots, absl::Time began, absl::Time at) {
  Use& use = owners_[owner];
  use.slots -= slots;
  use.began_s -= slots * EpochSeconds(began);
  if (use.slots <= 0) use.slots = use.began_s = 0;
  Add(owner, slots, began, at);
}

void OwnerShares::Add(const std::string& owner, int slots, absl::Time began, absl::Time ended) {
  Use& use = owners_[owner];
  const double used_s = slots * std::max(0.0, absl::ToDoubleSeconds(ended - began));
  const absl::Time at = std::max(use.at, ended);
  use.ended_s = Decayed(use, at) + used_s * std::exp2(-absl::FDivDuration(at - ended, half_life_));
  use.at = at;
}

double OwnerShares::Of(const std::string& owner, absl::Time now) const {
  const auto it = owners_.find(owner);
  if (it == owners_.end()) return 0;
  const Use& use = it->second;
  const double running_s = std::max(0.0, use.slots * EpochSeconds(now) - use.began_s);
  return Decayed(use, now) + running_s + Held(1) * use.slots;
}

}  // namespace traind
