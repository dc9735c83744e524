#include "server/store/log_pages.h"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "server/store/checksum_vfs.h"

namespace traind {
namespace {

// https://www.sqlite.org/fileformat2.html#walformat: numbers have their highest byte first.
constexpr int kHeaderBytes = 32;
constexpr int kFrameHeaderBytes = 24;
constexpr uint32_t kMagic = 0x377f0682;  // or one more

uint32_t NumberAt(const char* bytes) {
  uint32_t number = 0;
  for (int i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

absl::Status ReadAt(int fd, char* to, size_t bytes, int64_t at, const std::string& path) {
  while (bytes > 0) {
    const ssize_t got = pread(fd, to, bytes, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", path));
    if (got == 0) return absl::DataLossError(absl::StrCat(path, " is too short"));
    to += got;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

}  // namespace

LogPages::~LogPages() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<ChangedPages> LogPages::ReadNew(int frames, bool checksums) {
  ChangedPages change;
  if (frames == 0) return change;
  // Only the database and its index have locks that a second descriptor could end, not the log.
  if (fd_ < 0) fd_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path_));
  char header[kHeaderBytes];
  RETURN_IF_ERROR(ReadAt(fd_, header, sizeof(header), 0, path_));
  const Salts salts = {NumberAt(header + 16), NumberAt(header + 20)};
  if (!(salts == salts_)) read_ = 0;
  salts_ = salts;
  const absl::Status wrong = absl::DataLossError(absl::StrCat(path_, " is not as it was written"));
  const uint32_t page_bytes = NumberAt(header + 8);
  if ((NumberAt(header) & ~1u) != kMagic || page_bytes < 512 || page_bytes > 65536) return wrong;
  if (frames <= read_) return change;

  const size_t step = kFrameHeaderBytes + page_bytes;
  std::string bytes(step * static_cast<size_t>(frames - read_), '\0');
  RETURN_IF_ERROR(ReadAt(fd_, bytes.data(), bytes.size(),
                         kHeaderBytes + static_cast<int64_t>(step) * read_, path_));
  absl::flat_hash_map<uint32_t, size_t> newest;  // page: where its last frame is
  for (size_t at = 0; at < bytes.size(); at += step) {
    const char* const frame = bytes.data() + at;
    if (!(Salts{NumberAt(frame + 8), NumberAt(frame + 12)} == salts)) return wrong;
    newest[NumberAt(frame)] = at;
    change.database_pages = NumberAt(frame + 4);
  }
  // Only the last frame of a commit tells the size of the database.
  if (change.database_pages == 0) return wrong;
  change.page_bytes = static_cast<int>(page_bytes);
  change.pages.reserve(newest.size() * (4 + page_bytes));
  for (const auto& [page, at] : newest) {
    if (page > change.database_pages) continue;  // the database has shrunk
    char* const content = bytes.data() + at + kFrameHeaderBytes;
    if (checksums) sqlite::AddChecksum(content, change.page_bytes, int64_t{page} - 1);
    char number[4];
    std::memcpy(number, &page, sizeof(number));
    change.pages.append(number, sizeof(number));
    change.pages.append(content, page_bytes);
  }
  read_ = frames;
  return change;
}

}  // namespace traind
