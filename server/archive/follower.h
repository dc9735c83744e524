// Makes a database file of an archive, and keeps it up to date.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "server/archive/archive.h"

namespace traind {

// Threads: confined to one. Ownership: the archive outlives it.
class Follower {
 public:
  // path: of the file, which is replaced. It is no database yet while this object writes to it.
  Follower(const Archive* archive, std::string path);
  ~Follower();  // removes the file, unless it was finished
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // Brings the file to the end of the log, and syncs it. It begins with the newest base that is
  // whole, and does so again where the entries that follow have been removed meanwhile. Errors:
  // DataLoss (a damaged entry, or one that is missing before others), those of the system.
  absl::Status CatchUp();
  // As far as the file has come.
  const ArchivePosition& at() const { return at_; }
  // Gives the file its name. REQUIRES: CatchUp succeeded.
  absl::Status Finish(const std::string& path);

 private:
  absl::Status Begin();
  absl::Status Load(const ArchiveBase& base);
  absl::Status Apply(const ArchiveEntry& entry);
  absl::Status Follow(const StoredEntry& stored);
  absl::StatusOr<bool> IsAtTheEnd();
  absl::Status ReadToTheEnd();

  const Archive* const archive_;
  const std::string path_;
  int fd_ = -1;
  bool begun_ = false;
  bool unsynced_ = false;
  ArchivePosition at_;
};

}  // namespace traind
