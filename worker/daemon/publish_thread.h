// Publishes on a thread of its own: reading predictions and writing a file must
// not hold the event loop.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "common/publish/publisher.h"
#include "worker/daemon/mailbox.h"

namespace traind::worker {

using PublishFunction = std::function<absl::StatusOr<PublishedPrediction>(const PublishRequest&)>;

// In order of arrival, one at a time. Threads: safe; one of its own.
class PublishThread {
 public:
  struct Result {
    std::string job;
    absl::StatusOr<PublishedPrediction> prediction;
  };

  explicit PublishThread(PublishFunction publish)
      : publish_(std::move(publish)), thread_([this] { Run(); }) {}
  // Finishes the one it is at; the others are dropped.
  ~PublishThread() {
    {
      absl::MutexLock lock(&mutex_);
      stop_ = true;
    }
    thread_.join();
  }

  void Publish(PublishRequest request) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    requests_.push_back(std::move(request));
  }
  Mailbox<Result>& results() { return results_; }

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_) {
    while (true) {
      PublishRequest request;
      {
        absl::MutexLock lock(&mutex_);
        const auto ready = [this] {
          mutex_.AssertReaderHeld();
          return stop_ || !requests_.empty();
        };
        mutex_.Await(absl::Condition(&ready));
        if (stop_) return;
        request = std::move(requests_.front());
        requests_.pop_front();
      }
      results_.Put({request.job, publish_(request)});
    }
  }

  const PublishFunction publish_;
  Mailbox<Result> results_;
  absl::Mutex mutex_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<PublishRequest> requests_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace traind::worker
