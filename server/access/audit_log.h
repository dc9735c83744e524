// The record of who changed what, and of calls that were refused.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <cstdint>
#include <string>

#include "server/access/audit_chain.h"

namespace traind {

struct AuditEntry {
  absl::Time at;
  std::string caller, role;  // empty: nobody who is known
  std::string method;        // "CancelJob"
  std::string subject;       // the Job, or whose quota; may be empty
  absl::Status outcome;
};

// {"at":"2026-01-02T03:04:05.678Z","caller":"ann","role":"user","method":"CancelJob",
//  "subject":"j-1","code":"OK","message":"","before":"<64 digits>"} in one line, without a line
//  end.
// before: the digest of the line before (audit_chain.h).
std::string AuditLine(const AuditEntry& entry, absl::string_view before);

// Appends a line per entry to kAuditFile in the state folder, of mode 0600. A file that would
// exceed `most_bytes` becomes kOlderAuditFile, which takes the place of that before; the chain of
// the lines goes on in the new file, and after a restart. A line that cannot be written is told in
// the log of traind; the call it tells of goes on. Lines are not synced one by one: after a power
// loss the last ones may be missing, but job_events still has the changes themselves. Threads:
// safe.
class AuditLog {
 public:
  explicit AuditLog(std::string state_dir, int64_t most_bytes = 16 << 20);
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  void Add(const AuditEntry& entry) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status Write(const AuditEntry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Opens the file, and finds the end of the chain.
  absl::Status Open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The file has room for so many more bytes then, or could not be rotated.
  void MakeRoom(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string state_dir_;
  const int64_t most_bytes_;
  absl::Mutex mutex_;
  int file_ ABSL_GUARDED_BY(mutex_) = -1;
  std::string before_
      ABSL_GUARDED_BY(mutex_);  // the digest of the last line, once the file is open
  bool failing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace traind
