// A file that arrives in parts.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/durable_file.h"
#include "common/base/sha256.h"

namespace traind {

// Collects the parts in a temporary file beside the path, whose name has the digest of the whole:
// after a broken connection, or a restart, what came so far is still there. The file appears at its
// path only when it is whole and has the digest.
// Threads: confined to one; a second receiver of the same file is refused.
class IncomingFile {
 public:
  // expected: of the whole file. The folder is made where it is missing. Errors: InvalidArgument:
  // the digest is none; Unavailable: somebody else receives this file now; those of the system.
  static absl::StatusOr<std::unique_ptr<IncomingFile>> Open(const std::string& path,
                                                            FileDigest expected);
  // Removes what came of a file that nobody receives now.
  static void DiscardIdle(const std::string& path, const std::string& sha256);
  ~IncomingFile();
  IncomingFile(const IncomingFile&) = delete;
  IncomingFile& operator=(const IncomingFile&) = delete;

  const std::string& path() const { return path_; }
  // Returns how many bytes are there; the next part begins behind them.
  int64_t offset() const { return offset_; }
  // OutOfRange: more bytes than the whole file has.
  absl::Status Append(absl::string_view bytes);
  // Likewise, of a part as it came. zstd: it is a frame (zstd_part.h). InvalidArgument: it is none.
  absl::Status AppendPart(absl::string_view part, bool zstd);
  // Durable when it returns. Unavailable: bytes are missing, what came stays; DataLoss: the digest
  // is another one, what came is removed. REQUIRES: called once, and last.
  absl::Status Commit();
  // Removes what came. REQUIRES: called last, and not after Commit.
  void Discard();

 private:
  IncomingFile(std::string path, std::string temporary, FileDigest expected, int fd)
      : path_(std::move(path)),
        temporary_(std::move(temporary)),
        expected_(std::move(expected)),
        fd_(fd) {}

  // Of what is there.
  absl::StatusOr<FileDigest> Digest();

  const std::string path_, temporary_;
  const FileDigest expected_;
  const int fd_;
  int64_t offset_ = 0;
  // Of the file's first bytes, those that came through this object from 0 on.
  Sha256 sha256_;
  int64_t digested_ = 0;
};

}  // namespace traind
