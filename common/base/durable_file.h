// Files that are either whole or absent, even after a power cut.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>

namespace traind {

// Writes a temporary file in the same folder, syncs it, renames it to path and syncs the folder.
// Errors name the path and the system's reason: ENOSPC and EDQUOT become ResourceExhausted, EACCES
// and EROFS PermissionDenied. A failed write leaves path as it was and no temporary file behind.
absl::Status WriteFileDurably(const std::string& path, absl::string_view bytes);
// Writes the parts one after the other.
absl::Status WriteFileDurably(const std::string& path, absl::Span<const absl::string_view> parts);

// The names of temporary files are those of the files plus this, the writer's process, '-' and a
// number. A killed writer leaves them behind.
inline constexpr char kTemporaryMark[] = ".tmp-";

// Syncs a folder, so that the names in it outlive a power cut.
absl::Status SyncDir(const std::string& dir);

// Renames from to to and syncs to's folder. REQUIRES: the bytes of from are synced.
absl::Status RenameDurably(const std::string& from, const std::string& to);

// Returns the bytes of the whole file. NotFound names the path.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Creates path and its missing parents with mode 0700.
absl::Status MakeDirs(const std::string& path);

struct FileDigest {
  std::string sha256;  // lower-case hex
  int64_t bytes = 0;
};
absl::StatusOr<FileDigest> DigestFile(const std::string& path);
std::string Sha256Hex(absl::string_view bytes);
std::string Sha256Hex(absl::Span<const absl::string_view> parts);

// Writes a file that is too large for memory part by part. The file appears at its path, whole,
// only with Commit; without Commit nothing is left behind.
// Threads: confined to one. Errors: those of WriteFileDurably.
class DurableWriter {
 public:
  static absl::StatusOr<std::unique_ptr<DurableWriter>> Create(const std::string& path);
  virtual ~DurableWriter() = default;
  virtual absl::Status Append(absl::string_view bytes) = 0;
  virtual int64_t bytes() const = 0;  // written so far
  // REQUIRES: called once, and last.
  virtual absl::StatusOr<FileDigest> Commit() = 0;
};

// Returns an absl::Status for errno `error`: the canonical code, and the text "context: strerror".
absl::Status ErrnoStatus(int error, absl::string_view context);

}  // namespace traind
