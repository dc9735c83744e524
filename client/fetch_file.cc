#include "client/fetch_file.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/base/write_all.h"

namespace traind {
namespace {

absl::Status CannotWriteByErrno(const std::string& path) {
  return CannotWrite(path, std::strerror(errno));
}

// For mkostemp: a file beside it.
std::string TemporaryName(const std::string& path) { return absl::StrCat(path, ".XXXXXX"); }

}  // namespace

absl::Status CannotWrite(const std::string& path, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("cannot write ", path, ": ", why));
}

absl::Status CheckCanWrite(const std::string& path) {
  struct stat there {};
  if (stat(path.c_str(), &there) == 0 && S_ISDIR(there.st_mode)) {
    errno = EISDIR;
    return CannotWriteByErrno(path);
  }
  std::string temporary = TemporaryName(path);
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return CannotWriteByErrno(path);
  close(fd);
  unlink(temporary.c_str());
  return absl::OkStatus();
}

absl::StatusOr<FetchedFile> FetchToFile(TrainingClient& client, const std::string& id,
                                        const std::string& name, const std::string& path,
                                        absl::Duration limit) {
  std::string temporary = TemporaryName(path);
  int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return CannotWriteByErrno(path);
  bool renamed = false;
  auto cleanup = absl::MakeCleanup([&] {
    if (fd >= 0) close(fd);
    if (!renamed) unlink(temporary.c_str());
  });
  ASSIGN_OR_RETURN(
      const FetchedFile file, client.FetchArtifact(id, name, limit, [&](absl::string_view bytes) {
        const absl::Status written = WriteAll(fd, bytes, temporary);
        return written.ok() ? written : absl::FailedPreconditionError(written.message());
      }));
  // mkostemp makes the file private; it gets the permissions that the umask leaves, as any new file
  // does.
  const mode_t mask = umask(0);
  umask(mask);
  if (fchmod(fd, 0666 & ~mask) != 0 || fsync(fd) != 0) {
    return CannotWriteByErrno(temporary);
  }
  const int closed = close(fd);
  fd = -1;
  if (closed != 0) return CannotWriteByErrno(temporary);
  ASSIGN_OR_RETURN(const FileDigest digest, DigestFile(temporary));
  if (digest.sha256 != file.sha256) {
    return absl::DataLossError(absl::StrCat(
        name.empty() ? "predictions.csv" : name, " of ", id, " arrived with the digest ",
        digest.sha256, " instead of ", file.sha256, "; ", path, " was not written"));
  }
  if (const absl::Status moved = RenameDurably(temporary, path); !moved.ok()) {
    return CannotWrite(path, moved.message());
  }
  renamed = true;
  return file;
}

}  // namespace traind
