// Orders that the Worker gives to a running task.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <atomic>
#include <cstdint>

#include "common/base/clock.h"
#include "worker/rank_protocol/messages.h"

namespace traind {

// Threads: safe; one thread trains, another one takes commands.
class TaskControl {
 public:
  // stop_ms and remaining_ms count from now.
  TaskControl(const rank_protocol::Train& train, const Clock& clock);

  struct Orders {
    bool stop = false;
    bool predict = true;                                 // when stopping
    StopCause cause = StopCause::kNone;                  // of the stop
    int epochs = 0;                                      // planned
    double row_share = 1;                                // that an epoch sees
    absl::Duration stop_at = absl::InfiniteDuration();   // by Clock::MonotonicNow()
    absl::Duration deadline = absl::InfiniteDuration();  // the Prediction's
  };

  int64_t attempt() const { return attempt_; }
  // Grows with every change of the orders: cheap to look at before each step.
  int64_t version() const { return version_.load(std::memory_order_acquire); }
  Orders orders() const;

  void Apply(const rank_protocol::Replan& replan);
  void Apply(const rank_protocol::Stop& stop);

 private:
  const int64_t attempt_;
  const Clock& clock_;
  std::atomic<int64_t> version_{1};
  mutable absl::Mutex mutex_;
  Orders orders_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace traind
