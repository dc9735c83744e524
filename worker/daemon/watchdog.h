// Tells a Rank that hangs from one that is at work.
#pragma once

#include <absl/time/time.h>

#include "worker/rank_protocol/messages.h"

namespace traind::worker {

// Of one Attempt; fed with what rank 0 says. A gang with any rank stopped is
// silent, as rank 0 waits for it in a collective. What is measured of the task
// sets how long it may be silent. Before Started, and in PREPARE, which never says it, a process
// has nothing to say while it reads or tokenizes: there its work counts (process_work.h). Time is
// Clock::MonotonicNow().
class Watchdog {
 public:
  // `min_silence` is always allowed; `start_silence` until Started (reading the
  // table, a first CUDA context).
  Watchdog(absl::Duration min_silence, absl::Duration start_silence, absl::Duration now)
      : min_silence_(min_silence), start_silence_(start_silence), heard_at_(now) {}

  void Heard(const rank_protocol::FromProcess& message, absl::Duration now);

  // Its processes got on.
  void Worked(absl::Duration now) { heard_at_ = now; }
  bool counts_work() const { return !started_; }

  absl::Duration heard_at() const { return heard_at_; }
  // Silence until then is normal.
  absl::Duration due() const { return heard_at_ + Allowed(); }
  absl::Duration Allowed() const;

 private:
  absl::Duration min_silence_;
  absl::Duration start_silence_;
  absl::Duration heard_at_;
  bool started_ = false;
  absl::Duration step_;
  absl::Duration evaluate_;
  absl::Duration predict_;
};

}  // namespace traind::worker
