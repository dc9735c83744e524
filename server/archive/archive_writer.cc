#include "server/archive/archive_writer.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

// A reader writes every byte.
constexpr int64_t kLeastBytes = 16 << 20;

}  // namespace

ArchiveWriter::ArchiveWriter(Archive archive, std::string holder, ArchivePosition end,
                             int64_t most_entries)
    : archive_(std::move(archive)),
      holder_(std::move(holder)),
      most_entries_(most_entries),
      end_(std::move(end)) {
  const auto bases = archive_.Bases();
  entries_ = end_.number - (bases.ok() && !bases->empty() ? bases->front().number : 0);
}

ArchiveWriter::~ArchiveWriter() { StopCopying(); }

void ArchiveWriter::StopCopying() {
  stop_ = true;
  if (copies_.joinable()) copies_.join();
}

absl::Status ArchiveWriter::Add(ChangedPages change) {
  if (!failure_.ok()) return failure_;
  failure_ = TryToAdd(std::move(change));
  if (!failure_.ok() && !absl::IsFailedPrecondition(failure_)) {
    failure_ = absl::InternalError(failure_.message());
  }
  return failure_;
}

absl::Status ArchiveWriter::TryToAdd(ChangedPages change) {
  ArchiveEntry entry;
  entry.number = end_.number + 1;
  entry.epoch = end_.epoch;
  entry.holder = holder_;
  entry.before = end_.digest;
  entry.change = std::move(change);
  const EncodedEntry encoded = Encode(entry);
  const absl::Status added = archive_.Add(entry, encoded);
  if (absl::IsAlreadyExists(added)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "another traind has taken over the archive ", archive_.name(), " after change ",
        end_.number, "; what was not acknowledged by then is not stored"));
  }
  RETURN_IF_ERROR(added);
  end_ = {entry.number, entry.epoch, encoded.digest};
  ++entries_;
  bytes_ += static_cast<int64_t>(entry.change.pages.size());
  if (entry.change.page_bytes > 0) {
    database_bytes_ = entry.change.database_pages * entry.change.page_bytes;
  }
  return absl::OkStatus();
}

bool ArchiveWriter::WantsBase() const {
  return !copying_ && !stop_ &&
         (entries_ >= most_entries_ || bytes_ >= std::max(kLeastBytes, database_bytes_));
}

void ArchiveWriter::BeginBase(int fd) {
  if (copies_.joinable()) copies_.join();
  // If it fails, it is tried again after as much more.
  entries_ = 0;
  bytes_ = 0;
  copying_ = true;
  copies_ = std::thread([this, fd, at = end_] {
    Copy(fd, at);
    copying_ = false;
  });
}

void ArchiveWriter::Copy(int fd, ArchivePosition at) {
  absl::Status copied = archive_.AddBase(fd, at.number, at.digest, stop_);
  if (copied.ok()) copied = archive_.RemoveOld();
  if (!copied.ok() && !absl::IsCancelled(copied)) {
    TRAIND_LOG(WARNING) << "no copy of the database was added to the archive: " << copied;
  }
}

}  // namespace traind
