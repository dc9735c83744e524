// Asks the driver for the figures of GPUs on a thread of its own: a GPU that fell off the bus may
// not answer for long, which must not hold the event loop. Idle GPUs are asked, too: somebody else
// may use them.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "common/base/timed_wait.h"
#include "third_party/nvml/nvml.h"

namespace traind::worker {

// Threads: safe; one of its own.
class DeviceSampler {
 public:
  DeviceSampler(std::vector<std::string> uuids, absl::Duration every);
  ~DeviceSampler();

  // Those that answered lately, by their UUIDs.
  std::map<std::string, Nvml::Figures> Latest() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::vector<std::string> uuids_;
  const absl::Duration every_;
  absl::Mutex mutex_;
  TimedCondVar stopped_;  // after a change of stop_
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Nvml::Figures> latest_ ABSL_GUARDED_BY(mutex_);
  absl::Duration read_at_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace traind::worker
