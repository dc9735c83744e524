// Tells a Rank that hangs from one that is at work.
#pragma once

#include <absl/time/time.h>

#include "worker/rank_protocol/messages.h"

namespace traind::worker {

// Watches one Attempt; it is fed with the messages of rank 0. A gang with any rank stopped is
// silent, as rank 0 waits for it in a collective. What is measured of the task
// sets how long it may be silent. Before Started, and in PREPARE, which never says it, a process
// has nothing to say while it reads or tokenizes: there its work counts (process_work.h). Time is
// Clock::MonotonicNow().
class Watchdog {
 public:
  // `min_silence` is always allowed; `start_silence` until Started (reading the
  // table, a first CUDA context).
  Watchdog(absl::Duration min_silence, absl::Duration start_silence, absl::Duration now)
      : min_silence_(min_silence), start_silence_(start_silence), began_(now), heard_at_(now) {}

  void Heard(const rank_protocol::FromProcess& message, absl::Duration now);

  // A process of it got on. Other ranks than the first may also be busy with waiting for that one,
  // so they count for ten times start_silence alone.
  void Worked(bool first_rank, absl::Duration now) {
    if (first_rank || now - began_ < 10 * start_silence_) heard_at_ = now;
  }
  bool counts_work() const { return !started_; }

  absl::Duration heard_at() const { return heard_at_; }
  // Silence until then is normal.
  absl::Duration due() const { return heard_at_ + Allowed(); }
  absl::Duration Allowed() const;

 private:
  absl::Duration min_silence_;
  absl::Duration start_silence_;
  absl::Duration began_;
  absl::Duration heard_at_;
  bool started_ = false;
  absl::Duration step_;
  absl::Duration evaluate_;
  absl::Duration predict_;
};

}  // namespace traind::worker
