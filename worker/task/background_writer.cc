#include "worker/task/background_writer.h"

#include <utility>

namespace traind {

BackgroundWriter::BackgroundWriter() : thread_([this] { Loop(); }) {}

BackgroundWriter::~BackgroundWriter() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
  }
  thread_.join();
}

bool BackgroundWriter::TryStart(std::function<void()> work) {
  absl::MutexLock lock(&mutex_);
  if (busy_) return false;
  busy_ = true;
  work_ = std::move(work);
  return true;
}

bool BackgroundWriter::Wait(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !busy_; };
  return idle_.Await(mutex_, timeout, idle);
}

void BackgroundWriter::Loop() {
  while (true) {
    std::function<void()> work;
    {
      absl::MutexLock lock(&mutex_);
      const auto wake = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return static_cast<bool>(work_) || closing_;
      };
      mutex_.Await(absl::Condition(&wake));
      if (!work_) return;
      work = std::exchange(work_, nullptr);
    }
    work();
    work = nullptr;  // frees what the work holds before anyone learns of its end
    absl::MutexLock lock(&mutex_);
    busy_ = false;
    idle_.NotifyAll();
  }
}

}  // namespace traind
