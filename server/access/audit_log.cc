#include "server/access/audit_log.h"

#include <absl/strings/str_cat.h>
#include <errno.h>
#include <unistd.h>

#include <utility>

#include "common/base/durable_file.h"
#include "common/base/json_text.h"
#include "common/base/log.h"
#include "common/base/log_files.h"
#include "common/base/status_macros.h"
#include "common/base/write_all.h"

namespace traind {

std::string AuditLine(const AuditEntry& entry, absl::string_view before) {
  const std::string at = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", entry.at, absl::UTCTimeZone());
  return Chained(absl::StrCat("{\"at\":\"", at, "\",\"caller\":", JsonString(entry.caller),
                              ",\"role\":", JsonString(entry.role), ",\"method\":",
                              JsonString(entry.method), ",\"subject\":", JsonString(entry.subject),
                              ",\"code\":\"", absl::StatusCodeToString(entry.outcome.code()),
                              "\",\"message\":", JsonString(entry.outcome.message()), "}"),
                 before);
}

AuditLog::AuditLog(std::string state_dir, int64_t most_bytes)
    : state_dir_(std::move(state_dir)), most_bytes_(most_bytes) {}

AuditLog::~AuditLog() {
  absl::MutexLock lock(&mutex_);
  if (file_ >= 0) close(file_);
}

absl::Status AuditLog::Open() {
  const std::string path = absl::StrCat(state_dir_, "/", kAuditFile);
  ASSIGN_OR_RETURN(AuditEnd end, FindAuditEnd(state_dir_));
  if (!end.torn.empty()) {
    TRAIND_LOG(WARNING) << "the audit log ended with a piece of a line, which is removed: "
                        << JsonString(end.torn);
    if (truncate(path.c_str(), end.torn_at) != 0) return ErrnoStatus(errno, path);
  }
  ASSIGN_OR_RETURN(file_, OpenLogFile(path));
  before_ = std::move(end.digest);
  return absl::OkStatus();
}

void AuditLog::MakeRoom(int64_t bytes) {
  if (!IsFull(file_, bytes, most_bytes_)) return;
  const absl::StatusOr<int> fresh = RotateLogFiles(
      absl::StrCat(state_dir_, "/", kAuditFile), {absl::StrCat(state_dir_, "/", kOlderAuditFile)});
  // The lines matter more than the size.
  if (fresh.ok()) close(std::exchange(file_, *fresh));
}

absl::Status AuditLog::Write(const AuditEntry& entry) {
  if (file_ < 0) RETURN_IF_ERROR(Open());
  const std::string line = AuditLine(entry, before_);
  const std::string bytes = line + "\n";
  MakeRoom(static_cast<int64_t>(bytes.size()));
  if (const absl::Status written = WriteAll(file_, bytes, kAuditFile); !written.ok()) {
    // A piece of the line may stand there. It is removed when the file is opened again.
    close(std::exchange(file_, -1));
    return written;
  }
  before_ = AuditDigest(line);
  return absl::OkStatus();
}

void AuditLog::Add(const AuditEntry& entry) {
  absl::MutexLock lock(&mutex_);
  const absl::Status written = Write(entry);
  // Once for each time that it begins to fail: a full disk must not fill the log as well.
  if (!written.ok() && !failing_) {
    TRAIND_LOG(WARNING) << "the audit log lacks lines: " << written.message();
  }
  failing_ = !written.ok();
}

}  // namespace traind
