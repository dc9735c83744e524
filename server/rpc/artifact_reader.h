// The files of a Job that clients may fetch.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <utility>

#include "common/base/durable_file.h"

namespace traind {

// Reads one file in parts of at most 1 MiB. Published files never change, so what
// was opened is what the digest is of, also when a newer one replaces it.
// Threads: confined to one.
class ArtifactReader {
 public:
  // name: predictions.csv (also when empty) or manifest.json, of the standing
  // Prediction. InvalidArgument: not a plain file name; NotFound: no such file, or
  // none yet.
  static absl::StatusOr<ArtifactReader> Open(const std::string& state_dir, const std::string& job,
                                             const std::string& name);
  ArtifactReader(ArtifactReader&& other) noexcept;
  ~ArtifactReader();

  const FileDigest& digest() const { return digest_; }
  // Gives the descriptor away, at the file's first byte. REQUIRES: Next was not called.
  int TakeFile() { return std::exchange(fd_, -1); }
  // The next part; empty at the end.
  absl::StatusOr<std::string> Next();

 private:
  ArtifactReader(int fd, FileDigest digest) : fd_(fd), digest_(std::move(digest)) {}

  int fd_ = -1;
  FileDigest digest_;
};

}  // namespace traind
