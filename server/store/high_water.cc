#include "server/store/high_water.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

constexpr char kMagic[] = "traind-mark-1";
constexpr size_t kSlotBytes = 512;  // a sector
constexpr absl::Duration kBetweenSyncs = absl::Milliseconds(50);

std::string ToSlot(const HighWater& mark) {
  std::string line =
      absl::StrCat(kMagic, " ", mark.revision, " ", mark.chain, " ", mark.last_attempt);
  absl::StrAppend(&line, " ", Sha256Hex(line), "\n");
  line.resize(kSlotBytes, ' ');
  return line;
}

// nullopt: empty, torn or damaged.
std::optional<HighWater> FromSlot(absl::string_view slot) {
  const std::vector<std::string> words = absl::StrSplit(slot, absl::ByAnyChar(" \n"));
  HighWater mark;
  if (words.size() < 5 || words[0] != kMagic || !absl::SimpleAtoi(words[1], &mark.revision) ||
      !absl::SimpleAtoi(words[3], &mark.last_attempt)) {
    return std::nullopt;
  }
  mark.chain = words[2];
  if (ToSlot(mark) != slot) return std::nullopt;
  return mark;
}

}  // namespace

absl::StatusOr<std::optional<HighWater>> HighWaterFile::Read(const std::string& path) {
  const auto bytes = ReadFile(path);
  if (absl::IsNotFound(bytes.status())) return std::optional<HighWater>();
  RETURN_IF_ERROR(bytes.status());
  // Blanks are all that a process wrote that was killed while it created the file.
  if (bytes->find_first_not_of(' ') == std::string::npos) return std::optional<HighWater>();
  std::optional<HighWater> newest;
  for (size_t at = 0; at + kSlotBytes <= bytes->size(); at += kSlotBytes) {
    const auto mark = FromSlot(absl::string_view(*bytes).substr(at, kSlotBytes));
    if (mark && (!newest || mark->revision > newest->revision)) newest = mark;
  }
  if (!newest) return absl::DataLossError(absl::StrCat(path, " is damaged"));
  return newest;
}

absl::StatusOr<std::unique_ptr<HighWaterFile>> HighWaterFile::Open(const std::string& path) {
  ASSIGN_OR_RETURN(std::optional<HighWater> mark, Read(path));
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  auto file = std::unique_ptr<HighWaterFile>(new HighWaterFile(path, fd, std::move(mark)));
  if (!file->mark_) {
    // The file takes its space and gets its name now, so that later writes need neither.
    const std::string empty(2 * kSlotBytes, ' ');
    if (pwrite(fd, empty.data(), empty.size(), 0) != static_cast<ssize_t>(empty.size())) {
      const absl::Status failed = ErrnoStatus(errno, absl::StrCat("cannot write ", path));
      if (ftruncate(fd, 0) != 0) unlink(path.c_str());
      return failed;
    }
    RETURN_IF_ERROR(file->Write(HighWater{0, std::string(64, '0'), 0}));
    file->mark_.reset();
    RETURN_IF_ERROR(SyncDir(path.substr(0, path.rfind('/'))));
  }
  return file;
}

HighWaterFile::HighWaterFile(std::string path, int fd, std::optional<HighWater> mark)
    : path_(std::move(path)), fd_(fd), mark_(std::move(mark)) {
  syncs_ = std::thread([this] { SyncWhatIsWritten(); });
}

HighWaterFile::~HighWaterFile() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  syncs_.join();
  close(fd_);
}

absl::Status HighWaterFile::Write(const HighWater& mark) {
  const std::string slot = ToSlot(mark);
  const off_t at = static_cast<off_t>(kSlotBytes) * (mark.revision % 2);
  const ssize_t wrote = pwrite(fd_, slot.data(), slot.size(), at);
  if (wrote != static_cast<ssize_t>(slot.size())) {
    return ErrnoStatus(wrote < 0 ? errno : EIO, absl::StrCat("cannot write ", path_));
  }
  mark_ = mark;
  absl::MutexLock lock(&mutex_);
  written_ = true;
  changed_.NotifyAll();
  return failure_;
}

void HighWaterFile::SyncWhatIsWritten() {
  absl::MutexLock lock(&mutex_);
  const auto stopping = [this] {
    mutex_.AssertReaderHeld();
    return stopping_;
  };
  const auto due = [this] {
    mutex_.AssertReaderHeld();
    return stopping_ || written_;
  };
  while (true) {
    changed_.Await(mutex_, absl::InfiniteDuration(), due);
    if (std::exchange(written_, false)) {
      mutex_.Unlock();
      const int failed = fdatasync(fd_) == 0 ? 0 : errno;
      mutex_.Lock();
      if (failed != 0) failure_ = ErrnoStatus(failed, absl::StrCat("cannot sync ", path_));
    } else if (stopping_) {
      return;
    }
    changed_.Await(mutex_, kBetweenSyncs, stopping);
  }
}

}  // namespace traind
