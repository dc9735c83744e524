#include "server/archive/log_copy.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/base/write_all.h"

namespace traind {
namespace {

constexpr int64_t kBlock = 64 << 10;

std::string NewCopy(const std::string& copy) { return copy + ".new"; }

// Whether another file than the open one has that name. Between two renames none has it.
bool IsOther(int fd, const std::string& path) {
  struct stat open_file = {}, named = {};
  return fstat(fd, &open_file) == 0 && stat(path.c_str(), &named) == 0 &&
         (open_file.st_ino != named.st_ino || open_file.st_dev != named.st_dev);
}

}  // namespace

LogCopy::LogCopy(const std::string& from, const std::string& to, const LogNames& names)
    : log_(absl::StrCat(from, "/", names.name)),
      copy_(absl::StrCat(to, "/", names.name)),
      older_copy_(absl::StrCat(to, "/", names.older)) {}

LogCopy::~LogCopy() { Close(); }

void LogCopy::Close() {
  if (in_ >= 0) close(std::exchange(in_, -1));
  if (out_ >= 0) close(std::exchange(out_, -1));
  placed_ = false;
}

absl::Status LogCopy::CatchUp(int64_t most_bytes) {
  // One that woke up late may have given the name to its own copy.
  if (placed_ && IsOther(out_, copy_)) Close();
  absl::Status status;
  while (status.ok() && most_bytes > 0) {
    if (in_ < 0) status = Begin();
    if (!status.ok() || in_ < 0) break;
    status = CopyTheRest(&most_bytes);
    if (!status.ok() || most_bytes == 0) break;
    if (!placed_) status = Place();
    if (!status.ok() || !IsOther(in_, log_)) break;
    follows_ = true;
    Close();
  }
  if (!status.ok()) Close();
  return status;
}

absl::Status LogCopy::Begin() {
  in_ = open(log_.c_str(), O_RDONLY | O_CLOEXEC);
  if (in_ < 0) return errno == ENOENT ? absl::OkStatus() : ErrnoStatus(errno, log_);
  const std::string path = NewCopy(copy_);
  unlink(path.c_str());  // another traind may still write into it
  out_ = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (out_ < 0) return ErrnoStatus(errno, path);
  done_ = 0;
  return absl::OkStatus();
}

absl::Status LogCopy::CopyTheRest(int64_t* most_bytes) {
  const int64_t before = done_;
  std::string block(kBlock, '\0');
  while (*most_bytes > 0) {
    const ssize_t got = pread(in_, block.data(), std::min(kBlock, *most_bytes), done_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, log_);
    if (got == 0) break;
    RETURN_IF_ERROR(WriteAll(out_, {block.data(), static_cast<size_t>(got)}, copy_));
    done_ += got;
    *most_bytes -= got;
  }
  if (done_ > before && fdatasync(out_) != 0) return ErrnoStatus(errno, copy_);
  return absl::OkStatus();
}

absl::Status LogCopy::Place() {
  if (follows_) {
    if (rename(copy_.c_str(), older_copy_.c_str()) != 0) return ErrnoStatus(errno, older_copy_);
    follows_ = false;
  }
  RETURN_IF_ERROR(RenameDurably(NewCopy(copy_), copy_));
  placed_ = true;
  return absl::OkStatus();
}

}  // namespace traind
