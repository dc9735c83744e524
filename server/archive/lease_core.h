// When the traind that has an archive renews its lease, when it gives up, and when another one may
// take over. Pure: the time comes in, and nothing is read or written here.
//
// The lease is for speed alone: it lets one traind serve, and another one take over soon. That no
// acknowledged change is lost does not depend on any clock, but on the log (archive.h): who takes
// over writes the entry that the former traind would have to write next.
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <optional>
#include <string>

namespace traind {

struct LeaseTimes {
  // A lease that has not changed for so long may be taken. A shorter one is taken over sooner, and
  // is lost sooner when the archive's folder answers slowly.
  absl::Duration ttl = absl::Seconds(6);

  absl::Duration RenewAfter() const { return ttl * 2 / 15; }
  // Well before `ttl`, so that clocks may differ by a third and the holder has time to end.
  absl::Duration FenceAfter() const { return ttl * 2 / 3; }
};

// The holder's view. All times are of one monotonic clock that goes on while the machine sleeps.
// Threads: confined to one.
class LeaseTenure {
 public:
  enum class Act { kWait, kRenew, kFence };

  // begun: when the writing of the lease that stands began.
  LeaseTenure(LeaseTimes times, absl::Duration begun) : times_(times), begun_(begun) {}

  // A renewal that began then is written.
  void Renewed(absl::Duration begun);
  // kFence is for ever: whoever has let the time pass must end, even if a renewal comes through.
  Act Next(absl::Duration now);
  // When Next may say something else.
  absl::Duration WakeAt() const;

 private:
  const LeaseTimes times_;
  absl::Duration begun_;
  bool fenced_ = false;
};

// A lease as it stands in the archive.
struct LeaseNote {
  int64_t epoch = 0;
  int64_t beat = 0;       // grows with each renewal
  std::string holder;     // as in the log
  std::string host;       // of the holder, for people
  absl::Duration ttl;     // of the holder: one truth for both sides
  bool released = false;  // it ended by itself and has written everything

  bool operator==(const LeaseNote& other) const {
    return epoch == other.epoch && beat == other.beat && holder == other.holder &&
           ttl == other.ttl && released == other.released;
  }
};

// The view of one who would take over.
// Threads: confined to one.
class LeaseWatch {
 public:
  // epoch: the last one in the log. lease: that epoch's; nullopt: there is none, or it cannot be
  // read. holder: of the watcher, whose own former process is known to be dead.
  explicit LeaseWatch(std::string holder, absl::Duration unknown_ttl = LeaseTimes().ttl)
      : holder_(std::move(holder)), unknown_ttl_(unknown_ttl) {}

  void Saw(int64_t epoch, const std::optional<LeaseNote>& lease, absl::Duration now);
  // REQUIRES: Saw was called.
  bool MayTakeOver(absl::Duration now) const;

 private:
  const std::string holder_;
  const absl::Duration unknown_ttl_;
  int64_t epoch_ = -1;
  std::optional<LeaseNote> lease_;
  absl::Duration since_;  // the lease looks so since then, or longer
};

}  // namespace traind
