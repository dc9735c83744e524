#include "common/base/log_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

namespace traind {

absl::StatusOr<int> OpenLogFile(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  return fd;
}

bool IsFull(int fd, int64_t more, int64_t most_bytes) {
  struct stat file {};
  return fstat(fd, &file) == 0 && file.st_size > 0 && file.st_size + more > most_bytes;
}

absl::StatusOr<int> RotateLogFiles(const std::string& path, const std::vector<std::string>& older) {
  const std::string fresh = path + ".new";
  const int fd = open(fresh.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return absl::ErrnoToStatus(errno, fresh);
  for (size_t i = older.size() - 1; i > 0; --i) rename(older[i - 1].c_str(), older[i].c_str());
  const bool renamed = rename(path.c_str(), older[0].c_str()) == 0;
  const int error = errno;
  if (renamed && rename(fresh.c_str(), path.c_str()) == 0) return fd;
  const int rename_error = renamed ? errno : error;
  if (renamed) rename(older[0].c_str(), path.c_str());
  unlink(fresh.c_str());
  close(fd);
  return absl::ErrnoToStatus(rename_error, path);
}

}  // namespace traind
