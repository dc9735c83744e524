// What the traind that has an archive adds to it.
#pragma once

#include <absl/status/status.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "server/archive/archive.h"

namespace traind {

// Threads: confined to that of the store's writer; it starts one of its own for a base.
class ArchiveWriter {
 public:
  // A reader opens a file for each entry, so that many make it slow.
  static constexpr int64_t kMostEntries = 4096;

  // end: of the log, the entry with which this epoch began. A base is wanted after most_entries.
  ArchiveWriter(Archive archive, std::string holder, ArchivePosition end,
                int64_t most_entries = kMostEntries);
  ~ArchiveWriter();

  // Adds a change durably. FailedPrecondition: another traind has the archive by now, so the change
  // is not in it and never will be. Any other error is Internal: the outcome is unknown. After an
  // error nothing can be added any more.
  absl::Status Add(ChangedPages change);

  // Whether so much has been added that a reader would have to work long.
  bool WantsBase() const;
  // Copies the open database file in the background. Its content must be that of the last change,
  // and stay as it is until copying() is false. REQUIRES: !copying().
  void BeginBase(int fd);
  bool copying() const { return copying_; }
  // Gives up a base that is not done, and makes no other.
  void StopCopying();

  const ArchivePosition& end() const { return end_; }

 private:
  absl::Status TryToAdd(ChangedPages change);
  void Copy(int fd, ArchivePosition at);

  const Archive archive_;
  const std::string holder_;
  const int64_t most_entries_;
  ArchivePosition end_;
  absl::Status failure_;
  int64_t entries_ = 0;         // since the last base
  int64_t bytes_ = 0;           // likewise
  int64_t database_bytes_ = 0;  // after the last change
  std::atomic<bool> copying_{false}, stop_{false};
  std::thread copies_;
};

}  // namespace traind
