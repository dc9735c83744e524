#include "common/data/table/mapped_file.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "common/base/data_roots.h"
#include "common/base/durable_file.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

bool SameTime(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::Open(const std::string& path, MapUse use) {
  // O_NONBLOCK keeps a FIFO from blocking us; it has no effect on a regular file.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  std::unique_ptr<MappedFile> file(new MappedFile(path, fd));
  RETURN_IF_ERROR(CheckUserFile(fd, path));
  if (fstat(fd, &file->info_) != 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", path));
  if (!S_ISREG(file->info_.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  }
  if (file->info_.st_size == 0) return file;
  const auto size = static_cast<size_t>(file->info_.st_size);
  // Where every byte will be read, all pages are mapped at once: single page faults cost more.
  const int populate = use == MapUse::kWhole ? MAP_POPULATE : 0;
  void* const bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | populate, fd, 0);
  if (bytes == MAP_FAILED) return ErrnoStatus(errno, absl::StrCat("cannot map ", path));
  file->bytes_ = absl::string_view(static_cast<const char*>(bytes), size);
  return file;
}

std::string MappedFile::PathForOthers() const {
  return absl::StrCat("/proc/", getpid(), "/fd/", fd_);
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  close(fd_);
}

void MappedFile::Release(absl::string_view part) const {
  // Reading a page also maps those around it, even released ones: since Linux 6.18 its whole folio,
  // of up to 2 MB.
  constexpr uintptr_t kFaultAround = 1 << 21;
  const auto first = reinterpret_cast<uintptr_t>(bytes_.data());
  const auto address = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t begin = std::max(first, address / kFaultAround * kFaultAround);
  // This is only advice: if it fails, memory is used for longer.
  madvise(reinterpret_cast<void*>(begin), address + part.size() - begin, MADV_DONTNEED);
}

absl::Status MappedFile::CheckUnchanged() const {
  struct stat now;
  if (fstat(fd_, &now) != 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", path_));
  if (now.st_size == info_.st_size && SameTime(now.st_mtim, info_.st_mtim)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(path_, " was changed while it was read"));
}

}  // namespace traind
