// The chain of the audit log: each line carries the digest of the line before it, so that a line
// that was changed, removed or put between two others is found.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <string>

namespace traind {

inline constexpr char kAuditFile[] = "audit.jsonl";
inline constexpr char kOlderAuditFile[] = "audit.1.jsonl";

// The digest before the first line of all: 64 zeros.
std::string NoAuditDigest();

// Returns the line (an object of JSON, without a line end) with a last field `before`.
// before: the digest of the line before.
std::string Chained(std::string line, absl::string_view before);
// Returns the digest of a whole line: the SHA-256 of its bytes without the line end.
std::string AuditDigest(absl::string_view line);

// The end of the audit log of a state folder.
struct AuditEnd {
  std::string digest;   // of the last line; NoAuditDigest(): there is none
  std::string torn;     // a piece of a line that stands behind it without a line end
  int64_t torn_at = 0;  // where that begins in kAuditFile
};
absl::StatusOr<AuditEnd> FindAuditEnd(const std::string& state_dir);

struct AuditCheck {
  int64_t lines = 0;      // that the log has
  int64_t unchained = 0;  // of them, those of an earlier version, which stand in front
  std::string digest;     // of the last line
};

// Checks the audit log of a state folder, also while a traind adds to it.
// noted: the digest of a line, as this check has returned it earlier; empty: none. The log has to
// have that line still, or to begin behind it.
// Errors: DataLoss names the line that does not follow from the one before it, or says that the
// noted one is missing; those of the system.
absl::StatusOr<AuditCheck> CheckAuditLog(const std::string& state_dir, const std::string& noted);

}  // namespace traind
