#include "common/transfer/whole_copy.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"

namespace traind {

namespace fs = std::filesystem;

absl::Status CopyWhole(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::create_directories(fs::path(to).parent_path(), error);
  if (error) return ErrnoStatus(error.value(), fs::path(to).parent_path().string());
  static std::atomic<int> count{0};
  const std::string beside = absl::StrCat(to, kTemporaryMark, getpid(), "-", count++);
  fs::copy_file(from, beside, fs::copy_options::overwrite_existing, error);
  const int written = error ? -1 : open(beside.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = written >= 0 && fsync(written) == 0;
  const int why = error ? error.value() : errno;
  if (written >= 0) close(written);
  if (synced) {
    fs::rename(beside, to, error);
    if (!error) return absl::OkStatus();
  }
  unlink(beside.c_str());
  return ErrnoStatus(error ? error.value() : why, to);
}

absl::Status CopyFolderWhole(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::recursive_directory_iterator entries(from, error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    if (!entries->is_regular_file(error)) continue;
    const fs::path name = entries->path().lexically_relative(from);
    RETURN_IF_ERROR(CopyWhole(entries->path().string(), (fs::path(to) / name).string()));
  }
  return error ? ErrnoStatus(error.value(), from) : absl::OkStatus();
}

}  // namespace traind
