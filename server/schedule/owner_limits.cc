#include "server/schedule/owner_limits.h"

#include <absl/strings/str_cat.h>

namespace traind {

void OwnerLimits::Add(const std::string& owner, int OwnerUse::*what, int change) {
  const auto it = owners_.try_emplace(owner).first;
  it->second.*what += change;
  if (it->second.empty()) owners_.erase(it);
}

OwnerUse OwnerLimits::Of(const std::string& owner) const {
  const auto it = owners_.find(owner);
  return it == owners_.end() ? OwnerUse() : it->second;
}

absl::Status OwnerLimits::CheckJobs(const std::string& owner, int more) const {
  const int jobs = Of(owner).jobs;
  if (more <= most_jobs_ - jobs) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "owner-jobs: ", owner, " has ", jobs, jobs == 1 ? " Job that is" : " Jobs that are",
      " not over, and an owner may have ", most_jobs_, " (--owner-jobs of traind)",
      more > 1 ? absl::StrCat("; these ", more, " are taken together or not at all") : ""));
}

absl::Status OwnerLimits::CheckGang(int slots) const {
  if (slots <= most_slots_) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("resources.slots: ", slots, " are asked for each fold, and an owner may use ",
                   most_slots_, " at a time (--owner-slots of traind)"));
}

int OwnerLimits::SlotsLeft(const std::string& owner) const {
  return limits_slots() ? most_slots_ - Of(owner).slots : kNoLimit;
}

std::string OwnerLimits::SlotsText(const std::string& owner) const {
  return absl::StrCat("owner ", owner, " uses ", Of(owner).slots, " of the ", most_slots_,
                      " slots that an owner may use at a time");
}

}  // namespace traind
