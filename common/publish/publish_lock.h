// Allows one publisher at a time for each Job, also across processes.
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <string>

namespace traind {

// Holds a file lock (flock) until destroyed; the system releases it when the process dies. Movable.
// Threads: confined to one.
class JobPublishLock {
 public:
  // Creates the lock file (common/base/job_layout.h) in the existing folder and waits for the lock.
  // Unavailable: another process held it for all of `timeout`.
  static absl::StatusOr<JobPublishLock> Acquire(const std::string& state_dir,
                                                const std::string& job, absl::Duration timeout);
  ~JobPublishLock();
  JobPublishLock(JobPublishLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  JobPublishLock& operator=(JobPublishLock&&) = delete;

 private:
  explicit JobPublishLock(int fd) : fd_(fd) {}
  int fd_;
};

// How long a publisher waits for another one.
inline absl::Duration PublishLockTimeout() { return absl::Seconds(30); }

}  // namespace traind
