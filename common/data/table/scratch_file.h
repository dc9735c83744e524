// What a process makes of a user's file and needs for a while, in a file without a name
// (OpenNamelessFile), which goes with its object.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <memory>
#include <string>

namespace traind {

// Threads: confined to one; the mapped bytes are safe to share.
class ScratchFile {
 public:
  // dir: created if it is missing.
  static absl::StatusOr<std::unique_ptr<ScratchFile>> Create(const std::string& dir);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  // ResourceExhausted: the disk is full, or half of what was free on it is taken.
  absl::Status Append(absl::string_view bytes);
  uint64_t bytes() const { return written_; }
  // Maps what was written. REQUIRES: called once, after the last Append.
  absl::StatusOr<absl::string_view> Map();

 private:
  ScratchFile(std::string dir, int fd) : dir_(std::move(dir)), fd_(fd) {}

  const std::string dir_;
  const int fd_;
  uint64_t most_ = 0;  // bytes
  uint64_t written_ = 0;
  absl::string_view mapped_;
};

}  // namespace traind
