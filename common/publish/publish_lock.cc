#include "common/publish/publish_lock.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "common/base/job_layout.h"

namespace traind {

absl::StatusOr<JobPublishLock> JobPublishLock::Acquire(const std::string& state_dir,
                                                       const std::string& job,
                                                       absl::Duration timeout) {
  const std::string path = absl::StrCat(state_dir, "/", PublishLock(job));
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  JobPublishLock lock(fd);
  const absl::Duration deadline = SystemClock().MonotonicNow() + timeout;
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, absl::StrCat("cannot lock ", path));
    if (SystemClock().MonotonicNow() >= deadline) {
      return absl::UnavailableError(
          absl::StrCat("another process has held ", path, " for ", absl::FormatDuration(timeout)));
    }
    // Publishing takes about ten milliseconds.
    usleep(2000);
  }
  return lock;
}

JobPublishLock::~JobPublishLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace traind
