// Waits with a time limit that a step of the wall clock does not change.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>
#include <pthread.h>

namespace traind {

// A condition variable for an absl::Mutex whose time limits count on CLOCK_MONOTONIC. The timed
// waits of Abseil itself count on the wall clock: when that is put back, they last longer.
// Threads: safe. Whoever changes what others wait for calls NotifyAll afterwards.
class TimedCondVar {
 public:
  TimedCondVar();
  ~TimedCondVar();
  TimedCondVar(const TimedCondVar&) = delete;
  TimedCondVar& operator=(const TimedCondVar&) = delete;

  void NotifyAll();

  // Waits until ready() or the end of `timeout`; returns the last ready(). The mutex is held
  // whenever ready() is called. REQUIRES: the caller holds `mutex`.
  template <typename Ready>
  bool Await(absl::Mutex& mutex, absl::Duration timeout, const Ready& ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const absl::Duration deadline = Elapsed() + timeout;
    while (!ready()) {
      if (Elapsed() >= deadline) return false;
      WaitUntil(mutex, deadline);
    }
    return true;
  }

 private:
  // Time since some fixed point, on CLOCK_MONOTONIC.
  static absl::Duration Elapsed();
  // Returns after NotifyAll or at `deadline`, or earlier.
  void WaitUntil(absl::Mutex& mutex, absl::Duration deadline);

  pthread_mutex_t guard_;  // held from before the caller's mutex is released until the wait begins
  pthread_cond_t changed_;
};

}  // namespace traind
