// The calls that receive files now.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <functional>
#include <map>
#include <string>

namespace traind {

// A file is received by one call at a time (IncomingFile). Whoever offers it again takes it over
// from a call that got nothing for so long that its connection is likely dead. Threads: safe.
class Receivers {
 public:
  static constexpr absl::Duration kStall = absl::Seconds(10);
  explicit Receivers(absl::Duration stall = kStall) : stall_(stall) {}

  // A part came. end: ends the call that receives this path, from any thread.
  void NotePart(const std::string& path, std::function<void()> end) ABSL_LOCKS_EXCLUDED(mutex_);
  // The call is over. After that its `end` is not called.
  void Forget(const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the call that receives this path if it has stalled.
  void EndStalled(const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Receiver {
    std::function<void()> end;
    absl::Duration part_at;  // on the monotonic clock
  };
  const absl::Duration stall_;
  absl::Mutex mutex_;
  std::map<std::string, Receiver> receivers_ ABSL_GUARDED_BY(mutex_);  // by path
};

}  // namespace traind
