#include "common/base/nameless_file.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"

namespace traind {

absl::StatusOr<int> OpenNamelessFile(const std::string& dir) {
  if (dir.empty()) return OpenNamelessFile(".");
  RETURN_IF_ERROR(MakeDirs(dir));
  if (const int fd = open(dir.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); fd >= 0) return fd;
  std::string path = absl::StrCat(dir, "/scratch", kTemporaryMark, "XXXXXX");
  const int fd = mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot write below ", dir));
  unlink(path.c_str());
  return fd;
}

}  // namespace traind
