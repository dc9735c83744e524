#include "common/data/table/scratch_file.h"

#include <absl/strings/str_cat.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

#include "common/base/durable_file.h"
#include "common/base/nameless_file.h"
#include "common/base/status_macros.h"
#include "common/base/write_all.h"

namespace traind {

absl::StatusOr<std::unique_ptr<ScratchFile>> ScratchFile::Create(const std::string& dir) {
  ASSIGN_OR_RETURN(const int fd, OpenNamelessFile(dir));
  std::unique_ptr<ScratchFile> file(new ScratchFile(dir, fd));
  struct statvfs disk;
  if (fstatvfs(fd, &disk) != 0) return ErrnoStatus(errno, absl::StrCat("cannot examine ", dir));
  file->most_ = static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize / 2;
  return file;
}

ScratchFile::~ScratchFile() {
  if (!mapped_.empty()) munmap(const_cast<char*>(mapped_.data()), mapped_.size());
  close(fd_);
}

absl::Status ScratchFile::Append(absl::string_view bytes) {
  if (bytes.size() > most_ - written_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("more than half of the free disk space below ", dir_, " would be taken"));
  }
  written_ += bytes.size();
  return WriteAll(fd_, bytes, absl::StrCat("a scratch file below ", dir_));
}

absl::StatusOr<absl::string_view> ScratchFile::Map() {
  if (written_ == 0) return absl::string_view();
  void* const bytes = mmap(nullptr, written_, PROT_READ, MAP_SHARED, fd_, 0);
  if (bytes == MAP_FAILED) return ErrnoStatus(errno, "cannot map a scratch file");
  mapped_ = absl::string_view(static_cast<const char*>(bytes), written_);
  return mapped_;
}

}  // namespace traind
