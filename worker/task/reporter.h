// The one place that writes a Rank's messages.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <cstdint>

#include "common/base/clock.h"
#include "worker/rank_protocol/line_channel.h"
#include "worker/task/event_sink.h"

namespace traind {

// Nothing waits for the Worker: what the pipe has no room for is kept (16 MiB) and
// goes out later, Progress is dropped. Where nobody reads any more the process ends.
// Threads: safe.
class Reporter final : public EventSink {
 public:
  // `channel` outlives it.
  Reporter(rank_protocol::LineChannel& channel, const Clock& clock)
      : channel_(channel), clock_(clock) {}

  void Send(const rank_protocol::FromProcess& message) override;
  void SendProgress(const rank_protocol::Progress& progress) override;  // 10 a second at most

  // Writes what was kept, as far as there is room.
  void Flush();
  // Waits for room. For before the process ends.
  void Drain(absl::Duration timeout);

 private:
  rank_protocol::LineChannel& channel_;
  const Clock& clock_;
  void Check(const absl::Status& status);

  absl::Mutex mutex_;
  int64_t lost_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration last_progress_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
};

}  // namespace traind
