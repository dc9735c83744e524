#include "server/access/audit_log.h"

#include <absl/strings/str_cat.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "common/base/durable_file.h"
#include "common/base/json_text.h"
#include "common/base/log.h"
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

absl::Status AuditLog::Open() {
  const std::string path = absl::StrCat(state_dir_, "/", kAuditFile);
  if (file_ >= 0 && bytes_ >= most_bytes_) {
    close(std::exchange(file_, -1));
    const std::string older = absl::StrCat(state_dir_, "/", kOlderAuditFile);
    if (rename(path.c_str(), older.c_str()) != 0) return ErrnoStatus(errno, older);
  }
  if (file_ >= 0) return absl::OkStatus();
  file_ = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  struct stat about {};
  if (file_ < 0 || fstat(file_, &about) != 0) return ErrnoStatus(errno, path);
  bytes_ = about.st_size;
  return absl::OkStatus();
}

absl::Status AuditLog::Write(absl::string_view line) {
  RETURN_IF_ERROR(Open());
  while (!line.empty()) {
    const ssize_t wrote = write(file_, line.data(), line.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return ErrnoStatus(errno, kAuditFile);
    line.remove_prefix(static_cast<size_t>(wrote));
    bytes_ += wrote;
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
