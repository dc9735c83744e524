#include "worker/program/disk_guard.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace traind {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

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

}  // namespace traind
