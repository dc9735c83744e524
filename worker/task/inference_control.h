// The Worker's orders to a task that predicts.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <cstdint>
#include <vector>

#include "common/base/clock.h"
#include "common/base/timed_wait.h"
#include "worker/rank_protocol/messages.h"

namespace traind {

// Holds the deadline, the latest order and the rows that wait.
// Threads: safe; one thread predicts, another one receives commands.
class InferenceControl {
 public:
  // remaining_ms counts from now; -1: there is no deadline.
  InferenceControl(int64_t attempt, int64_t remaining_ms, const Clock& clock);

  int64_t attempt() const { return attempt_; }
  // On the clock of Clock::MonotonicNow().
  absl::Duration deadline() const ABSL_LOCKS_EXCLUDED(mutex_);
  enum class Order { kContinue, kAnswer, kDrop };  // kAnswer: with the values there are
  Order order() const ABSL_LOCKS_EXCLUDED(mutex_);

  void Apply(const rank_protocol::Replan& replan) ABSL_LOCKS_EXCLUDED(mutex_);
  void Apply(const rank_protocol::Stop& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  void Push(rank_protocol::Rows rows) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns all waiting rows. If there are none, waits until rows come, another order comes or
  // `timeout` is over.
  std::vector<rank_protocol::Rows> WaitForRows(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const int64_t attempt_;
  const Clock& clock_;
  mutable absl::Mutex mutex_;
  TimedCondVar news_;  // after a change of order_ or rows_
  absl::Duration deadline_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  Order order_ ABSL_GUARDED_BY(mutex_) = Order::kContinue;
  std::vector<rank_protocol::Rows> rows_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace traind
