// The files of a Job that clients may fetch.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "common/base/durable_file.h"
#include "common/transfer/folder_pack.h"

namespace traind {

// Reads one file, or the pack of a folder, in parts of at most 1 MiB. Published files never change,
// so what was opened is what the digest is of, also when a newer one replaces it.
// Threads: confined to one.
class ArtifactReader {
 public:
  // name: predictions.csv (also when empty) or manifest.json, of the standing
  // Prediction. InvalidArgument: not a plain file name; NotFound: no such file, or
  // none yet.
  static absl::StatusOr<ArtifactReader> Open(const std::string& state_dir, const std::string& job,
                                             const std::string& name);
  // The pack of what a Job's program has left in the Job's own folder. A program that is at work
  // may replace its files: then Next fails with Aborted, or the bytes have another digest.
  // NotFound: there is nothing (yet); PermissionDenied: the folder is a link.
  static absl::StatusOr<ArtifactReader> OpenResults(const std::string& state_dir,
                                                    const std::string& job);
  ArtifactReader(ArtifactReader&& other) noexcept;
  ~ArtifactReader();

  const FileDigest& digest() const { return digest_; }
  bool is_pack() const { return pack_ != nullptr; }
  // Gives the descriptor away, at the file's first byte. REQUIRES: Next was not called, and
  // !is_pack().
  int TakeFile() { return std::exchange(fd_, -1); }
  // The next part; empty at the end.
  absl::StatusOr<std::string> Next();

 private:
  ArtifactReader(int fd, FileDigest digest) : fd_(fd), digest_(std::move(digest)) {}
  ArtifactReader(std::unique_ptr<FolderPack> pack, FileDigest digest)
      : pack_(std::move(pack)), digest_(std::move(digest)) {}

  int fd_ = -1;
  std::unique_ptr<FolderPack> pack_;  // instead of fd_
  int64_t offset_ = 0;                // in pack_
  FileDigest digest_;
};

}  // namespace traind
