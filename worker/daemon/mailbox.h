// Hands values from other threads to an event loop.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace traind::worker {

// Threads: safe. fd() polls as readable while something is inside.
template <class T>
class Mailbox {
 public:
  Mailbox() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Mailbox() { close(fd_); }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  int fd() const { return fd_; }

  void Put(T value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    values_.push_back(std::move(value));
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof(one));
  }

  std::vector<T> TakeAll() {
    const std::lock_guard<std::mutex> lock(mutex_);
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(fd_, &count, sizeof(count));
    return std::exchange(values_, {});
  }

 private:
  const int fd_;
  std::mutex mutex_;
  std::vector<T> values_;  // guarded by mutex_
};

}  // namespace traind::worker
