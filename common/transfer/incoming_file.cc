#include "common/transfer/incoming_file.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/transfer/zstd_part.h"

namespace traind {
namespace {

constexpr size_t kDigestLetters = 64;
// So many letters of the digest are a number that a temporary file's name may end with.
constexpr size_t kLettersInName = 15;

bool IsDigest(const std::string& sha256) {
  return sha256.size() == kDigestLetters &&
         std::all_of(sha256.begin(), sha256.end(), absl::ascii_isxdigit);
}

// Has the form of kTemporaryMark's names, with no process, so that only its age removes it.
std::string TemporaryName(const std::string& path, const std::string& sha256) {
  uint64_t number = 0;
  (void)absl::SimpleHexAtoi(sha256.substr(0, kLettersInName), &number);
  return absl::StrCat(path, kTemporaryMark, "0-", number);
}

}  // namespace

absl::StatusOr<std::unique_ptr<IncomingFile>> IncomingFile::Open(const std::string& path,
                                                                 FileDigest expected) {
  if (!IsDigest(expected.sha256) || expected.bytes < 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": no size or no SHA-256"));
  }
  RETURN_IF_ERROR(MakeDirs(path.substr(0, path.rfind('/'))));
  std::string temporary = TemporaryName(path, expected.sha256);
  const int fd =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot create ", path));
  std::unique_ptr<IncomingFile> file(
      new IncomingFile(path, std::move(temporary), std::move(expected), fd));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return absl::UnavailableError(absl::StrCat(path, " is being received already"));
  }
  struct stat info = {}, named = {};
  if (fstat(fd, &info) != 0) return ErrnoStatus(errno, path);
  // Whoever held the lock before may have renamed or removed it.
  if (stat(file->temporary_.c_str(), &named) != 0 || named.st_ino != info.st_ino) {
    return absl::UnavailableError(absl::StrCat(path, " was just received"));
  }
  file->offset_ = info.st_size;
  if (file->offset_ > file->expected_.bytes) {
    if (ftruncate(fd, 0) != 0) return ErrnoStatus(errno, path);
    file->offset_ = 0;
  }
  return file;
}

IncomingFile::~IncomingFile() { close(fd_); }

absl::Status IncomingFile::Append(absl::string_view bytes) {
  if (offset_ + static_cast<int64_t>(bytes.size()) > expected_.bytes) {
    return absl::OutOfRangeError(absl::StrCat(path_, ": more than ", expected_.bytes, " bytes"));
  }
  const int64_t begin = offset_;
  const absl::string_view part = bytes;
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, absl::StrCat("cannot write ", path_));
    offset_ += written;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  if (digested_ == begin) {
    sha256_.Add(part);
    digested_ = offset_;
  }
  // The disk begins now, so that the sync at the end need not wait for all of it. It promises
  // nothing.
  (void)sync_file_range(fd_, begin, offset_ - begin, SYNC_FILE_RANGE_WRITE);
  return absl::OkStatus();
}

void IncomingFile::Discard() { unlink(temporary_.c_str()); }

void IncomingFile::DiscardIdle(const std::string& path, const std::string& sha256) {
  const std::string temporary = TemporaryName(path, sha256);
  const int fd = open(temporary.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return;
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) unlink(temporary.c_str());
  close(fd);
}

absl::StatusOr<FileDigest> IncomingFile::Digest() {
  if (digested_ != offset_) return DigestFile(temporary_);
  return FileDigest{sha256_.Hex(), offset_};
}

absl::Status IncomingFile::AppendPart(absl::string_view part, bool zstd) {
  if (!zstd) return Append(part);
  ASSIGN_OR_RETURN(const std::string bytes, UnpackPart(part));
  return Append(bytes);
}

absl::Status IncomingFile::Commit() {
  ASSIGN_OR_RETURN(const FileDigest digest, Digest());
  if (digest.bytes < expected_.bytes) {
    return absl::UnavailableError(
        absl::StrCat(path_, ": ", digest.bytes, " of ", expected_.bytes, " bytes came"));
  }
  if (digest.sha256 != expected_.sha256) {
    Discard();
    return absl::DataLossError(absl::StrCat(path_, ": other bytes came than were sent"));
  }
  if (fsync(fd_) != 0) return ErrnoStatus(errno, absl::StrCat("cannot sync ", path_));
  return RenameDurably(temporary_, path_);
}

}  // namespace traind
