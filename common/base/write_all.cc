#include "common/base/write_all.h"

#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <cerrno>

#include "common/base/durable_file.h"

namespace traind {

absl::Status WriteAll(int fd, absl::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, absl::StrCat("cannot write ", path));
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace traind
