#include "common/base/durable_file.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <utility>
#include <vector>

#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/base/write_all.h"

namespace traind {
namespace {

constexpr size_t kReadBlock = 1 << 20;

std::string ParentDir(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Creates a new file beside `path`, opens it for writing and stores its name in `name`.
absl::StatusOr<int> CreateBeside(const std::string& path, std::string& name) {
  static std::atomic<uint64_t> counter{0};
  for (int tries = 0; tries < 1000; ++tries) {
    name = absl::StrCat(path, kTemporaryMark, getpid(), "-", counter.fetch_add(1));
    const int fd = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) return fd;
    // A killed process that had our process number may have left a file behind.
    if (errno != EEXIST) return ErrnoStatus(errno, absl::StrCat("cannot create ", path));
  }
  return absl::InternalError(absl::StrCat("cannot create ", path, ": no free temporary name"));
}

// Calls take(block) for each block of the file, in order.
template <typename Take>
absl::Status ForEachBlock(const std::string& path, Take take) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  absl::Cleanup closer = [fd] { close(fd); };
  std::vector<char> block(kReadBlock);
  for (;;) {
    const ssize_t n = read(fd, block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", path));
    if (n == 0) return absl::OkStatus();
    take(absl::string_view(block.data(), static_cast<size_t>(n)));
  }
}

class WriterOfParts final : public DurableWriter {
 public:
  WriterOfParts(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}
  ~WriterOfParts() override {
    if (fd_ >= 0) close(fd_);
    if (!committed_) unlink(temporary_.c_str());
  }

  absl::Status Append(absl::string_view bytes) override {
    bytes_ += static_cast<int64_t>(bytes.size());
    buffer_.append(bytes.data(), bytes.size());
    return buffer_.size() < kReadBlock ? absl::OkStatus() : Flush();
  }
  int64_t bytes() const override { return bytes_; }

  absl::StatusOr<FileDigest> Commit() override {
    RETURN_IF_ERROR(Flush());
    if (fsync(fd_) != 0) return ErrnoStatus(errno, absl::StrCat("cannot sync ", path_));
    if (close(std::exchange(fd_, -1)) != 0) {
      return ErrnoStatus(errno, absl::StrCat("cannot close ", path_));
    }
    if (rename(temporary_.c_str(), path_.c_str()) != 0) {
      return ErrnoStatus(errno, absl::StrCat("cannot rename to ", path_));
    }
    committed_ = true;
    RETURN_IF_ERROR(SyncDir(ParentDir(path_)));
    return FileDigest{sha256_.Hex(), bytes_};
  }

 private:
  absl::Status Flush() {
    sha256_.Add(buffer_);
    RETURN_IF_ERROR(WriteAll(fd_, buffer_, path_));
    buffer_.clear();
    return absl::OkStatus();
  }

  const std::string path_, temporary_;
  int fd_;
  std::string buffer_;
  int64_t bytes_ = 0;
  Sha256 sha256_;
  bool committed_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DurableWriter>> DurableWriter::Create(const std::string& path) {
  std::string temporary;
  ASSIGN_OR_RETURN(const int fd, CreateBeside(path, temporary));
  return std::make_unique<WriterOfParts>(path, std::move(temporary), fd);
}

absl::Status SyncDir(const std::string& dir) {
  const int fd = open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open folder ", dir));
  const int result = fsync(fd);
  const int error = errno;
  close(fd);
  if (result != 0) return ErrnoStatus(error, absl::StrCat("cannot sync folder ", dir));
  return absl::OkStatus();
}

absl::Status ErrnoStatus(int error, absl::string_view context) {
  return absl::ErrnoToStatus(error, context);
}

absl::Status WriteFileDurably(const std::string& path, absl::string_view bytes) {
  return WriteFileDurably(path, absl::MakeConstSpan(&bytes, 1));
}

absl::Status WriteFileDurably(const std::string& path, absl::Span<const absl::string_view> parts) {
  std::string temporary;
  ASSIGN_OR_RETURN(const int fd, CreateBeside(path, temporary));
  absl::Status written;
  for (const absl::string_view part : parts) {
    written = WriteAll(fd, part, path);
    if (!written.ok()) break;
  }
  if (written.ok() && fsync(fd) != 0) {
    written = ErrnoStatus(errno, absl::StrCat("cannot sync ", path));
  }
  if (close(fd) != 0 && written.ok()) {
    written = ErrnoStatus(errno, absl::StrCat("cannot close ", path));
  }
  if (written.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    written = ErrnoStatus(errno, absl::StrCat("cannot rename to ", path));
  }
  if (!written.ok()) {
    unlink(temporary.c_str());
    return written;
  }
  return SyncDir(ParentDir(path));
}

absl::Status RenameDurably(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot rename ", from, " to ", to));
  }
  return SyncDir(ParentDir(to));
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  struct stat info;
  std::string bytes;
  // The size is only a hint: the file may be a pipe, or grow.
  if (stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
    bytes.reserve(static_cast<size_t>(info.st_size));
  }
  RETURN_IF_ERROR(ForEachBlock(
      path, [&](absl::string_view block) { bytes.append(block.data(), block.size()); }));
  return bytes;
}

absl::Status MakeDirs(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string prefix = path.substr(0, end);
    if (mkdir(prefix.c_str(), 0700) == 0) {
      RETURN_IF_ERROR(SyncDir(ParentDir(prefix)));
    } else if (errno != EEXIST) {
      return ErrnoStatus(errno, absl::StrCat("cannot create folder ", prefix));
    }
    if (end == std::string::npos) break;
  }
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, path);
  if (!S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a folder"));
  }
  return absl::OkStatus();
}

absl::StatusOr<FileDigest> DigestFile(const std::string& path) {
  Sha256 sha256;
  FileDigest digest;
  RETURN_IF_ERROR(ForEachBlock(path, [&](absl::string_view block) {
    sha256.Add(block);
    digest.bytes += static_cast<int64_t>(block.size());
  }));
  digest.sha256 = sha256.Hex();
  return digest;
}

std::string Sha256Hex(absl::string_view bytes) { return Sha256Hex(absl::MakeConstSpan(&bytes, 1)); }

std::string Sha256Hex(absl::Span<const absl::string_view> parts) {
  Sha256 sha256;
  for (const absl::string_view part : parts) sha256.Add(part);
  return sha256.Hex();
}

}  // namespace traind
