#include "server/http/message.h"

#include <algorithm>
#include <cstring>

namespace traind {

void HttpStream::Push(std::shared_ptr<const std::string> part) {
  absl::MutexLock lock(&mutex_);
  if (closed_ || ended_ || part->empty()) return;
  parts_.push_back(std::move(part));
  if (parts_.size() > kMostParts) parts_.erase(parts_.begin() + (sent_ > 0 ? 1 : 0));
  Wake();
}

void HttpStream::End() {
  absl::MutexLock lock(&mutex_);
  ended_ = true;
  Wake();
}

bool HttpStream::closed() const {
  absl::MutexLock lock(&mutex_);
  return closed_;
}

void HttpStream::Attach(std::function<void()> sleep, std::function<void()> wake) {
  absl::MutexLock lock(&mutex_);
  sleep_ = std::move(sleep);
  wake_ = std::move(wake);
}

int64_t HttpStream::Read(char* to, size_t most) {
  absl::MutexLock lock(&mutex_);
  if (parts_.empty()) {
    if (ended_) return -1;
    sleeping_ = true;
    sleep_();
    return 0;
  }
  const std::string& part = *parts_.front();
  const size_t bytes = std::min(most, part.size() - sent_);
  std::memcpy(to, part.data() + sent_, bytes);
  sent_ += bytes;
  if (sent_ == part.size()) {
    parts_.pop_front();
    sent_ = 0;
  }
  return static_cast<int64_t>(bytes);
}

void HttpStream::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  parts_.clear();
  sent_ = 0;
  sleeping_ = false;
}

void HttpStream::Wake() {
  if (!sleeping_) return;
  sleeping_ = false;
  wake_();
}

}  // namespace traind
