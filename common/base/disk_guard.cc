#include "common/base/disk_guard.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "common/base/job_layout.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMiB = int64_t{1} << 20;

// Holds the lock of a fold's folder, as ProgramTrainer does, unless somebody else does.
class FoldLock {
 public:
  explicit FoldLock(const fs::path& fold)
      : fd_(open((fold / kFoldLock).c_str(), O_RDWR | O_CLOEXEC)),
        held_(fd_ >= 0 && flock(fd_, LOCK_EX | LOCK_NB) == 0) {}
  FoldLock(const FoldLock&) = delete;
  ~FoldLock() {
    if (fd_ >= 0) close(fd_);
  }
  bool held() const { return held_; }

 private:
  const int fd_;
  const bool held_;
};

// The folders below that a program of some fold works in.
std::vector<fs::path> FoldsBelow(const fs::path& programs) {
  constexpr int kDeepest = 1;  // of a trial, of a fold
  std::vector<fs::path> folds;
  std::error_code error, ignored;
  for (fs::recursive_directory_iterator it(programs, error), end; !error && it != end;
       it.increment(error)) {
    if (fs::exists(it->path() / kFoldLock, ignored)) {
      folds.push_back(it->path());
      it.disable_recursion_pending();
    } else if (it.depth() >= kDeepest) {
      it.disable_recursion_pending();
    }
  }
  return folds;
}

}  // namespace

DiskSpace SpaceOf(const std::string& folder) {
  struct statvfs info;
  if (statvfs(folder.c_str(), &info) != 0) return {};
  const auto block = static_cast<int64_t>(info.f_frsize);
  return {block * static_cast<int64_t>(info.f_blocks), block * static_cast<int64_t>(info.f_bavail)};
}

int64_t HeldBack(const DiskSpace& space) {
  return std::clamp(space.size / 50, 32 * kMiB, 1024 * kMiB);
}

int64_t BytesBelow(const std::string& folder) {
  constexpr int64_t kSector = 512;
  int64_t bytes = 0;
  std::error_code error;
  std::filesystem::recursive_directory_iterator entries(folder, error);
  for (; !error && entries != std::filesystem::recursive_directory_iterator();
       entries.increment(error)) {
    struct stat info;
    if (lstat(entries->path().c_str(), &info) == 0) bytes += kSector * info.st_blocks;
  }
  return bytes;
}

bool FillsDisk(const DiskSpace& space, int64_t own_bytes) {
  if (space.size <= 0 || space.free >= HeldBack(space)) return false;
  return own_bytes >= std::max(16 * kMiB, space.size / 20);
}

std::vector<std::string> ClearFilledDisk(const std::string& state_dir, const DiskSpace& space) {
  std::vector<std::string> cleared;
  if (space.size <= 0 || space.free >= HeldBack(space)) return cleared;
  std::error_code error, ignored;
  for (fs::directory_iterator it(fs::path(state_dir) / JobDir(""), error), end; !error && it != end;
       it.increment(error)) {
    const std::string job = it->path().filename().string();
    for (const fs::path& fold : FoldsBelow(fs::path(state_dir) / ProgramsDir(job))) {
      const FoldLock lock(fold);
      if (!lock.held() || !FillsDisk(space, BytesBelow(fold.string()))) continue;
      for (const char* name : {"work", "out", "checkpoints"}) fs::remove_all(fold / name, ignored);
      cleared.push_back(fs::relative(fold, state_dir, ignored).string());
    }
  }
  return cleared;
}

}  // namespace traind
