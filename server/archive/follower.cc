#include "server/archive/follower.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

constexpr size_t kNumberBytes = 4;

absl::Status WriteAt(int fd, absl::string_view bytes, int64_t at, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t wrote = pwrite(fd, bytes.data(), bytes.size(), at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return ErrnoStatus(errno, absl::StrCat("cannot write ", path));
    bytes.remove_prefix(static_cast<size_t>(wrote));
    at += wrote;
  }
  return absl::OkStatus();
}

}  // namespace

Follower::Follower(const Archive* archive, std::string path)
    : archive_(archive), path_(std::move(path)) {}

Follower::~Follower() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(path_.c_str());
}

absl::Status Follower::Begin() {
  if (fd_ < 0) fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd_ < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path_));
  if (ftruncate(fd_, 0) != 0) return ErrnoStatus(errno, absl::StrCat("cannot write ", path_));
  at_ = ArchivePosition();
  unsynced_ = true;
  ASSIGN_OR_RETURN(const std::vector<ArchiveBase> bases, archive_->Bases());
  absl::Status last;
  for (const ArchiveBase& base : bases) {
    last = Load(base);
    if (last.ok()) {
      at_ = {base.number, base.epoch, base.digest};
      begun_ = true;
      return absl::OkStatus();
    }
    TRAIND_LOG(WARNING) << last.message() << "; an older copy is tried";
  }
  RETURN_IF_ERROR(last);
  begun_ = true;
  return absl::OkStatus();
}

absl::Status Follower::Load(const ArchiveBase& base) {
  const std::atomic<bool> never{false};
  RETURN_IF_ERROR(archive_->objects().ReadTo(base.key, fd_, never).status());
  ASSIGN_OR_RETURN(const FileDigest file, DigestFile(path_));
  if (file.sha256 == base.sha256 && file.bytes == base.bytes) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(archive_->objects().NameOf(base.key), " is damaged"));
}

absl::Status Follower::Apply(const ArchiveEntry& entry) {
  const ChangedPages& change = entry.change;
  if (change.page_bytes == 0) return absl::OkStatus();
  unsynced_ = true;
  const size_t step = kNumberBytes + static_cast<size_t>(change.page_bytes);
  for (size_t at = 0; at + step <= change.pages.size(); at += step) {
    uint32_t page = 0;
    std::memcpy(&page, change.pages.data() + at, kNumberBytes);
    const absl::string_view bytes(change.pages.data() + at + kNumberBytes,
                                  static_cast<size_t>(change.page_bytes));
    RETURN_IF_ERROR(WriteAt(fd_, bytes, (int64_t{page} - 1) * change.page_bytes, path_));
  }
  if (ftruncate(fd_, change.database_pages * change.page_bytes) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot write ", path_));
  }
  return absl::OkStatus();
}

absl::Status Follower::CatchUp() {
  RETURN_IF_ERROR(ReadToTheEnd());
  if (!unsynced_) return absl::OkStatus();
  // Here and not at the end: whoever takes over has no time for it.
  if (fdatasync(fd_) != 0) return ErrnoStatus(errno, absl::StrCat("cannot sync ", path_));
  unsynced_ = false;
  return absl::OkStatus();
}

// The end, unless whoever has the archive has removed entries that were not read yet.
absl::StatusOr<bool> Follower::IsAtTheEnd() {
  ASSIGN_OR_RETURN(const std::vector<ArchiveBase> bases, archive_->Bases());
  if (bases.empty() || bases.front().number <= at_.number) return true;
  std::string digest;
  ASSIGN_OR_RETURN(const auto still, archive_->Read(at_.number + 1, &digest));
  if (still) return false;
  const ArchivePosition before = at_;
  RETURN_IF_ERROR(Begin());
  if (at_.number > before.number) return false;
  return absl::DataLossError(absl::StrCat("the archive ", archive_->name(), " has no change ",
                                          before.number + 1, ", but later ones"));
}

absl::Status Follower::Follow(const StoredEntry& stored) {
  const ArchiveEntry& entry = stored.entry;
  if (entry.before != at_.digest || entry.epoch < at_.epoch) {
    return absl::DataLossError(absl::StrCat("change ", entry.number, " of the archive ",
                                            archive_->name(), " does not follow ", at_.number));
  }
  if (!entry.has_base) {
    RETURN_IF_ERROR(Apply(entry));
    at_ = {entry.number, entry.epoch, stored.digest};
    return absl::OkStatus();
  }
  // It was written before its entry, so it is there.
  RETURN_IF_ERROR(Begin());
  if (at_.number >= entry.number) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the archive ", archive_->name(),
                                          " lacks the copy that belongs to change ", entry.number));
}

absl::Status Follower::ReadToTheEnd() {
  if (!begun_) RETURN_IF_ERROR(Begin());
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<StoredEntry> some, archive_->ReadSome(at_.number + 1));
    if (some.empty()) {
      ASSIGN_OR_RETURN(const bool end, IsAtTheEnd());
      if (end) return absl::OkStatus();
    }
    for (const StoredEntry& stored : some) {
      // A copy may have brought the file further.
      if (stored.entry.number == at_.number + 1) RETURN_IF_ERROR(Follow(stored));
    }
  }
}

absl::Status Follower::Finish(const std::string& path) {
  if (fsync(fd_) != 0) return ErrnoStatus(errno, absl::StrCat("cannot sync ", path_));
  if (close(std::exchange(fd_, -1)) != 0) return ErrnoStatus(errno, path_);
  begun_ = false;
  return RenameDurably(path_, path);
}

}  // namespace traind
