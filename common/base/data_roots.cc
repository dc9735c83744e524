#include "common/base/data_roots.h"

#include <absl/base/thread_annotations.h>
#include <absl/cleanup/cleanup.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/synchronization/mutex.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

struct KeptRoots {
  absl::Mutex mutex;
  bool kept ABSL_GUARDED_BY(mutex) = false;
  std::vector<std::string> roots ABSL_GUARDED_BY(mutex);
};

KeptRoots& Kept() {
  static auto& kept = *new KeptRoots;
  return kept;
}

}  // namespace

absl::StatusOr<std::string> RealPathOf(int fd) {
  char path[PATH_MAX];
  const ssize_t length =
      readlink(absl::StrCat("/proc/self/fd/", fd).c_str(), path, sizeof(path) - 1);
  if (length < 0) return ErrnoStatus(errno, "cannot resolve the path");
  return std::string(path, static_cast<size_t>(length));
}

bool LiesBelow(absl::string_view real, absl::Span<const std::string> roots) {
  return std::any_of(roots.begin(), roots.end(), [&](const std::string& root) {
    return root == "/" || real == root || absl::StartsWith(real, absl::StrCat(root, "/"));
  });
}

void KeepToDataRoots(const std::vector<std::string>& roots, const std::vector<std::string>& own) {
  std::vector<std::string> real;
  for (const auto* const folders : {&roots, &own}) {
    for (const std::string& folder : *folders) {
      char resolved[PATH_MAX];
      if (realpath(folder.c_str(), resolved) != nullptr) real.emplace_back(resolved);
    }
  }
  absl::MutexLock lock(&Kept().mutex);
  Kept().kept = !roots.empty();
  Kept().roots = std::move(real);
}

absl::Status CheckUserFile(int fd, const std::string& path) {
  absl::MutexLock lock(&Kept().mutex);
  if (!Kept().kept) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string real, RealPathOf(fd));
  if (real == path || LiesBelow(real, Kept().roots)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(path, " was moved after the Job was submitted: it leads to ", real,
                   " now, which lies outside the data roots"));
}

absl::StatusOr<std::string> RealUserFolder(const std::string& path) {
  const int fd = open(path.c_str(), O_PATH | O_CLOEXEC | O_DIRECTORY);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  const absl::Cleanup closer = [fd] { close(fd); };
  RETURN_IF_ERROR(CheckUserFile(fd, path));
  return RealPathOf(fd);
}

absl::StatusOr<std::string> FileBelow(const std::string& folder, absl::string_view file,
                                      const std::string& table) {
  std::error_code error;
  ASSIGN_OR_RETURN(const std::string real, RealUserFolder(folder));
  const std::filesystem::path named = std::filesystem::path(folder) / std::string(file);
  std::string resolved = std::filesystem::weakly_canonical(named, error).string();
  if (error || file.empty() || !absl::StartsWith(resolved, absl::StrCat(real, "/"))) {
    return absl::InvalidArgumentError(absl::StrCat(
        table, ": '", file, "' is not a file below the folder of the table that names it"));
  }
  return resolved;
}

}  // namespace traind
