#include "server/loop/publish_pool.h"

#include <algorithm>
#include <utility>

namespace traind {

PublishPool::PublishPool(int threads, Publisher publisher, Done done)
    : publisher_(std::move(publisher)), done_(std::move(done)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

PublishPool::~PublishPool() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    waiting_.clear();
  }
  for (std::thread& thread : threads_) thread.join();
}

void PublishPool::Add(PublishCommand command, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  waiting_.push_back({deadline, std::move(command)});
}

void PublishPool::Run() {
  while (true) {
    PublishCommand command;
    {
      absl::MutexLock lock(&mutex_);
      const auto ready = [this] {
        mutex_.AssertReaderHeld();
        return stopping_ || !waiting_.empty();
      };
      mutex_.Await(absl::Condition(&ready));
      if (stopping_) return;
      const auto next = std::min_element(
          waiting_.begin(), waiting_.end(),
          [](const Waiting& a, const Waiting& b) { return a.deadline < b.deadline; });
      command = std::move(next->command);
      waiting_.erase(next);
    }
    Published published{command.job, publisher_(command.request)};
    done_(std::move(published));
  }
}

}  // namespace traind
