// Publishes on a thread of its own: reading predictions and writing a file must
// not hold the event loop.
#pragma once

#include <absl/status/statusor.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
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
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void Publish(PublishRequest request) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      requests_.push_back(std::move(request));
    }
    changed_.notify_all();
  }
  Mailbox<Result>& results() { return results_; }

 private:
  void Run() {
    while (true) {
      PublishRequest request;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return stop_ || !requests_.empty(); });
        if (stop_) return;
        request = std::move(requests_.front());
        requests_.pop_front();
      }
      results_.Put({request.job, publish_(request)});
    }
  }

  const PublishFunction publish_;
  Mailbox<Result> results_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  bool stop_ = false;
  std::deque<PublishRequest> requests_;
  std::thread thread_;
};

}  // namespace traind::worker
