// How much of the machines each owner has had: device-seconds, of which half are forgotten after
// each half-life, and what its folds hold now. Pure.
//
// Threads: confined to one.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/time/time.h>

#include <string>

namespace traind {

class OwnerShares {
 public:
  explicit OwnerShares(absl::Duration half_life) : half_life_(half_life) {}

  void Began(const std::string& owner, int slots, absl::Time at);
  // REQUIRES: that Began.
  void Ended(const std::string& owner, int slots, absl::Time began, absl::Time at);
  // One that was over before.
  void Add(const std::string& owner, int slots, absl::Time began, absl::Time ended);

  // In device-seconds.
  double Of(const std::string& owner, absl::Time now) const;

  // The use that slots count for while they are held: as if for ten minutes already. Owners
  // without a past get equal numbers of slots.
  static double Held(int slots) { return 600.0 * slots; }

 private:
  struct Use {
    double ended_s = 0;  // as of `at`
    absl::Time at = absl::UnixEpoch();
    // The sums over running folds: of their slots, and of slots x the seconds since the epoch at
    // which they began.
    double slots = 0;
    double began_s = 0;
  };
  double Decayed(const Use& use, absl::Time now) const;

  const absl::Duration half_life_;
  absl::flat_hash_map<std::string, Use> owners_;
};

}  // namespace traind
