#include "server/rpc/receivers.h"

#include <utility>

#include "common/base/clock.h"

namespace traind {

void Receivers::NotePart(const std::string& path, std::function<void()> end) {
  absl::MutexLock lock(&mutex_);
  receivers_[path] = {std::move(end), SystemClock().MonotonicNow()};
}

void Receivers::Forget(const std::string& path) {
  absl::MutexLock lock(&mutex_);
  receivers_.erase(path);
}

void Receivers::EndStalled(const std::string& path) {
  absl::MutexLock lock(&mutex_);
  const auto found = receivers_.find(path);
  if (found == receivers_.end()) return;
  if (SystemClock().MonotonicNow() - found->second.part_at >= stall_) found->second.end();
}

}  // namespace traind
