#include <absl/cleanup/cleanup.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/base/write_all.h"
#include "server/objects/object_store.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlock = 1 << 20;

// Gives each block of an open file to take(bytes).
template <typename Take>
absl::Status ReadBlocks(int fd, const std::string& name, const std::atomic<bool>& stop,
                        const Take& take) {
  std::string block(kBlock, '\0');
  for (off_t at = 0;;) {
    if (stop) return absl::CancelledError("traind ends");
    const ssize_t got = pread(fd, block.data(), block.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", name));
    if (got == 0) return absl::OkStatus();
    RETURN_IF_ERROR(take(absl::string_view(block.data(), static_cast<size_t>(got))));
    at += got;
  }
}

class FolderObjects final : public ObjectStore {
 public:
  explicit FolderObjects(std::string folder) : folder_(std::move(folder)) {}

  std::string NameOf(const std::string& key) const override {
    return absl::StrCat(folder_, "/", key);
  }
  bool is_folder() const override { return true; }
  absl::Duration look_every() const override { return absl::Milliseconds(200); }

  absl::StatusOr<std::string> Read(const std::string& key) const override {
    return ReadFile(NameOf(key));
  }
  absl::StatusOr<absl::Time> ReadTo(const std::string& key, int fd,
                                    const std::atomic<bool>& stop) const override;
  absl::Status WriteOnce(const std::string& key,
                         absl::Span<const absl::string_view> parts) const override;
  absl::Status Write(const std::string& key, absl::string_view bytes) const override {
    RETURN_IF_ERROR(MakeFolderOf(key));
    return WriteFileDurably(NameOf(key), bytes);
  }
  absl::Status WriteOften(const std::string& key, absl::string_view bytes) const override;
  absl::Status WriteFile(const std::string& key, const OutgoingObject& file,
                         const std::atomic<bool>& stop) const override;
  absl::StatusOr<std::vector<ObjectInfo>> List(const std::string& prefix) const override;
  absl::Status Remove(const std::string& key) const override {
    const std::string path = NameOf(key);
    if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
    return ErrnoStatus(errno, absl::StrCat("cannot remove ", path));
  }

 private:
  absl::Status MakeFolderOf(const std::string& key) const {
    const std::string path = NameOf(key);
    return MakeDirs(path.substr(0, path.rfind('/')));
  }

  const std::string folder_;
};

absl::StatusOr<absl::Time> FolderObjects::ReadTo(const std::string& key, int fd,
                                                 const std::atomic<bool>& stop) const {
  const std::string path = NameOf(key);
  const int from = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (from < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  const absl::Cleanup closer = [from] { close(from); };
  struct stat about = {};
  if (fstat(from, &about) != 0) return ErrnoStatus(errno, path);
  if (ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) < 0)
    return ErrnoStatus(errno, "cannot write");
  RETURN_IF_ERROR(ReadBlocks(from, path, stop, [&](absl::string_view bytes) {
    return WriteAll(fd, bytes, absl::StrCat("the copy of ", path));
  }));
  return absl::TimeFromTimespec(about.st_mtim);
}

absl::Status FolderObjects::WriteOnce(const std::string& key,
                                      absl::Span<const absl::string_view> parts) const {
  static std::atomic<uint64_t> counter{0};
  // Two machines may have processes with one number.
  static const uint64_t process = std::random_device()();
  RETURN_IF_ERROR(MakeFolderOf(key));
  const std::string path = NameOf(key);
  const std::string temporary =
      absl::StrCat(path, kTemporaryMark, process, "-", counter.fetch_add(1));
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot create ", temporary));
  const absl::Cleanup remove = [&] {
    close(fd);
    unlink(temporary.c_str());
  };
  for (const absl::string_view part : parts) RETURN_IF_ERROR(WriteAll(fd, part, path));
  if (fsync(fd) != 0) return ErrnoStatus(errno, absl::StrCat("cannot sync ", path));
  if (link(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    // A file server may have made the link and lost its answer.
    struct stat about = {};
    const bool linked = fstat(fd, &about) == 0 && about.st_nlink == 2;
    if (!linked && error == EEXIST) return absl::AlreadyExistsError(absl::StrCat(path, " exists"));
    if (!linked) return ErrnoStatus(error, absl::StrCat("cannot create ", path));
  }
  return SyncDir(path.substr(0, path.rfind('/')));
}

// In place, because file servers tell of new content sooner than of new names.
absl::Status FolderObjects::WriteOften(const std::string& key, absl::string_view bytes) const {
  const std::string path = NameOf(key);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  const absl::Cleanup closer = [fd] { close(fd); };
  const ssize_t wrote = pwrite(fd, bytes.data(), bytes.size(), 0);
  if (wrote != static_cast<ssize_t>(bytes.size())) {
    return ErrnoStatus(wrote < 0 ? errno : EIO, absl::StrCat("cannot write ", path));
  }
  // Where the folder is that of a file server, this sends it there.
  if (fdatasync(fd) != 0) return ErrnoStatus(errno, absl::StrCat("cannot sync ", path));
  return absl::OkStatus();
}

absl::Status FolderObjects::WriteFile(const std::string& key, const OutgoingObject& file,
                                      const std::atomic<bool>& stop) const {
  RETURN_IF_ERROR(MakeFolderOf(key));
  ASSIGN_OR_RETURN(const auto writer, DurableWriter::Create(NameOf(key)));
  RETURN_IF_ERROR(ReadBlocks(file.fd, absl::StrCat("what becomes ", NameOf(key)), stop,
                             [&](absl::string_view bytes) { return writer->Append(bytes); }));
  return writer->Commit().status();
}

absl::StatusOr<std::vector<ObjectInfo>> FolderObjects::List(const std::string& prefix) const {
  std::vector<ObjectInfo> objects;
  std::error_code error;
  const std::string folder = NameOf(prefix.substr(0, prefix.rfind('/') + 1));
  if (!fs::exists(folder, error)) return objects;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code gone;
    if (!it->is_regular_file(gone)) continue;
    const std::string key = it->path().lexically_relative(folder_).string();
    if (!absl::StartsWith(key, prefix) || absl::StrContains(key, kTemporaryMark)) continue;
    const auto bytes = static_cast<int64_t>(it->file_size(gone));
    if (!gone) objects.push_back({key, bytes, ""});
  }
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot read ", folder));
  std::sort(objects.begin(), objects.end(),
            [](const ObjectInfo& a, const ObjectInfo& b) { return a.key < b.key; });
  return objects;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ObjectStore>> OpenFolderObjects(const std::string& folder) {
  RETURN_IF_ERROR(MakeDirs(folder));
  return std::make_shared<const FolderObjects>(folder);
}

}  // namespace traind
