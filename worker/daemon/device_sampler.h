// Asks the driver for the figures of GPUs on a thread of its own: a GPU that fell off the bus may
// not answer for long, which must not hold the event loop.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "common/base/timed_wait.h"
#include "third_party/nvml/nvml.h"

namespace traind::worker {

// The library is loaded while there is a GPU to watch. Threads: safe; one of its own.
class DeviceSampler {
 public:
  explicit DeviceSampler(absl::Duration every);
  ~DeviceSampler();

  // From now on these are looked at. Empty: none.
  void Watch(std::set<std::string> uuids) ABSL_LOCKS_EXCLUDED(mutex_);
  // Those that answered lately.
  std::map<std::string, Nvml::Figures> Latest() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

  const absl::Duration every_;
  absl::Mutex mutex_;
  TimedCondVar stopped_;  // after a change of stop_
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<std::string> uuids_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Nvml::Figures> latest_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace traind::worker
