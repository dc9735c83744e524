// A thread that writes files while training continues.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <functional>
#include <thread>

#include "common/base/timed_wait.h"

namespace traind {

// Runs one piece of work at a time. The destructor waits for the work that runs.
// Threads: confined to one.
class BackgroundWriter {
 public:
  BackgroundWriter();
  ~BackgroundWriter();
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  // Returns false, without accepting `work`, if the previous work still runs.
  bool TryStart(std::function<void()> work);
  // Returns false if work still runs after `timeout`.
  bool Wait(absl::Duration timeout);

 private:
  void Loop();

  absl::Mutex mutex_;
  TimedCondVar idle_;  // after the end of a piece of work
  std::function<void()> work_ ABSL_GUARDED_BY(mutex_);
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace traind
