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

namespace traind {

std::string AuditLine(const AuditEntry& entry) {
  const std::string at = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", entry.at, absl::UTCTimeZone());
  return absl::StrCat("{\"at\":\"", at, "\",\"caller\":", JsonString(entry.caller),
                      ",\"role\":", JsonString(entry.role),
                      ",\"method\":", JsonString(entry.method),
                      ",\"subject\":", JsonString(entry.subject), ",\"code\":\"",
                      absl::StatusCodeToString(entry.outcome.code()),
                      "\",\"message\":", JsonString(entry.outcome.message()), "}\n");
}

AuditLog::AuditLog(std::string state_dir, int64_t most_bytes)
    : state_dir_(std::move(state_dir)), most_bytes_(most_bytes) {}

AuditLog::~AuditLog() {
  absl::MutexLock lock(&mutex_);
  if (file_ >= 0) close(file_);
}

absl::Status AuditLog::Open(int64_t bytes) {
  const std::string path = absl::StrCat(state_dir_, "/", kAuditFile);
  if (file_ < 0) {
    ASSIGN_OR_RETURN(file_, OpenLogFile(path));
  }
  if (!IsFull(file_, bytes, most_bytes_)) return absl::OkStatus();
  const absl::StatusOr<int> fresh =
      RotateLogFiles(path, {absl::StrCat(state_dir_, "/", kOlderAuditFile)});
  // The lines matter more than the size.
  if (fresh.ok()) close(std::exchange(file_, *fresh));
  return absl::OkStatus();
}

absl::Status AuditLog::Write(absl::string_view line) {
  RETURN_IF_ERROR(Open(static_cast<int64_t>(line.size())));
  while (!line.empty()) {
    const ssize_t wrote = write(file_, line.data(), line.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return ErrnoStatus(errno, kAuditFile);
    line.remove_prefix(static_cast<size_t>(wrote));
  }
  return absl::OkStatus();
}

void AuditLog::Add(const AuditEntry& entry) {
  const std::string line = AuditLine(entry);
  absl::MutexLock lock(&mutex_);
  const absl::Status written = Write(line);
  // Once for each time that it begins to fail: a full disk must not fill the log as well.
  if (!written.ok() && !failing_) {
    TRAIND_LOG(WARNING) << "the audit log lacks lines: " << written.message();
  }
  failing_ = !written.ok();
}

}  // namespace traind
