// A thread that writes files while training goes on.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <functional>
#include <thread>

namespace traind {

// Runs one piece of work at a time. Threads: of one owner. The destructor waits
// for the work that runs.
class BackgroundWriter {
 public:
  BackgroundWriter();
  ~BackgroundWriter();
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  // false: the one before still runs; `work` is not taken.
  bool TryStart(std::function<void()> work);
  // false: something still runs after `timeout`.
  bool Wait(absl::Duration timeout);

 private:
  void Loop();

  absl::Mutex mutex_;
  std::function<void()> work_ ABSL_GUARDED_BY(mutex_);
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace traind
