// Files that are either whole or absent, also after a power cut.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>

namespace traind {

// Temporary name in the same folder, write, fsync, rename over path, fsync of
// the folder. Errors name the path and the system's reason; ENOSPC and EDQUOT
// are ResourceExhausted, EACCES and EROFS PermissionDenied. A failed write
// leaves path as it was and no temporary file.
absl::Status WriteFileDurably(const std::string& path, absl::string_view bytes);
// The parts one after the other.
absl::Status WriteFileDurably(const std::string& path, absl::Span<const absl::string_view> parts);

// rename(from, to) and fsync of to's folder; from's bytes must be synced.
absl::Status RenameDurably(const std::string& from, const std::string& to);

// Whole file. NotFound names the path.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Creates path and its parents (mode 0700 for what it creates).
absl::Status MakeDirs(const std::string& path);

struct FileDigest {
  std::string sha256;  // lower-case hex
  int64_t bytes = 0;
};
absl::StatusOr<FileDigest> DigestFile(const std::string& path);
std::string Sha256Hex(absl::string_view bytes);
std::string Sha256Hex(absl::Span<const absl::string_view> parts);

// A file that is too large to be held, written part by part: whole and in place after
// Commit, absent before, and without a trace where there is none. Threads: confined to one.
// Errors: those of WriteFileDurably.
class DurableWriter {
 public:
  static absl::StatusOr<std::unique_ptr<DurableWriter>> Create(const std::string& path);
  virtual ~DurableWriter() = default;
  virtual absl::Status Append(absl::string_view bytes) = 0;
  virtual int64_t bytes() const = 0;  // so far
  // Once, last.
  virtual absl::StatusOr<FileDigest> Commit() = 0;
};

// An absl::Status for errno `error`: canonical code, and "context: strerror".
absl::Status ErrnoStatus(int error, absl::string_view context);

}  // namespace traind
