// What one owner may have at most, and what each has now. Pure; a question costs a look-up.
//
// Threads: confined to one.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>

#include <limits>
#include <string>

namespace traind {

// What an owner has now.
struct OwnerUse {
  int jobs = 0;              // that are not over
  int slots = 0;             // that Attempts of its Jobs hold
  int training = 0;          // Jobs whose folds run or could
  int training_in_time = 0;  // those among them with a deadline

  bool empty() const { return jobs == 0 && slots == 0 && training == 0; }
};

class OwnerLimits {
 public:
  static constexpr int kNoLimit = std::numeric_limits<int>::max();

  // Of each owner; 0: there is no limit.
  OwnerLimits(int most_jobs, int most_slots)
      : most_jobs_(most_jobs > 0 ? most_jobs : kNoLimit),
        most_slots_(most_slots > 0 ? most_slots : kNoLimit) {}

  void Add(const std::string& owner, int OwnerUse::*what, int change);
  OwnerUse Of(const std::string& owner) const;

  // ResourceExhausted: with so many Jobs more it would have too many.
  absl::Status CheckJobs(const std::string& owner, int more) const;
  // InvalidArgument: no gang of so many slots would ever run.
  absl::Status CheckGang(int slots) const;

  bool limits_slots() const { return most_slots_ != kNoLimit; }
  // The gangs of so many slots that one owner may have at a time.
  int Gangs(int slots) const { return limits_slots() ? most_slots_ / slots : kNoLimit; }
  // The slots that further folds of the owner may take; 0 or less: none.
  int SlotsLeft(const std::string& owner) const;
  // "owner ada uses 8 of the 8 slots that an owner may use at a time"
  std::string SlotsText(const std::string& owner) const;

 private:
  const int most_jobs_, most_slots_;
  absl::flat_hash_map<std::string, OwnerUse> owners_;  // that have something
};

}  // namespace traind
