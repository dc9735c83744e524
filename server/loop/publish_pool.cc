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
  Add(
      [this, command = std::move(command)] {
        done_(Published{command.job, publisher_(command.request)});
      },
      deadline);
}

void PublishPool::Add(std::function<void()> work, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  waiting_.push_back({deadline, std::move(work)});
}

void PublishPool::Run() {
  while (true) {
    std::function<void()> work;
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
      work = std::move(next->work);
      waiting_.erase(next);
    }
    work();
  }
}

}  // namespace traind
