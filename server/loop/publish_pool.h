// Threads that publish Predictions and do other file work, so that the control loop never waits for
// a disk.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <functional>
#include <thread>
#include <vector>

#include "server/control/events.h"

namespace traind {

// Runs the work with the earliest deadline first.
// Threads: safe. The destructor finishes running work and drops waiting work.
class PublishPool {
 public:
  using Publisher = std::function<absl::StatusOr<PublishedPrediction>(const PublishRequest&)>;
  using Done = std::function<void(Published)>;  // called on a thread of the pool

  PublishPool(int threads, Publisher publisher, Done done);
  // For other work alone.
  explicit PublishPool(int threads) : PublishPool(threads, nullptr, nullptr) {}
  ~PublishPool();
  PublishPool(const PublishPool&) = delete;
  PublishPool& operator=(const PublishPool&) = delete;

  void Add(PublishCommand command, absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  void Add(std::function<void()> work, absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiting {
    absl::Time deadline;
    std::function<void()> work;
  };
  void Run();

  const Publisher publisher_;
  const Done done_;
  absl::Mutex mutex_;
  std::vector<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace traind
