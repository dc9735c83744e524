// The high-water mark of a database: a file beside it that tells how far its acknowledged changes
// went. A database that is behind its mark has lost its write-ahead log, or is an old copy.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "common/base/timed_wait.h"

namespace traind {

struct HighWater {
  int64_t revision = 0;      // of the last durable commit
  std::string chain;         // the digest of that revision and all before it; 64 characters
  int64_t last_attempt = 0;  // the highest Attempt number in use

  bool operator==(const HighWater& other) const {
    return revision == other.revision && chain == other.chain && last_attempt == other.last_attempt;
  }
};

// The file has two slots, which are written in turn, so that a torn write leaves the other one.
// Threads: Write belongs to one; a thread of its own syncs what was written, soon afterwards: a
// killed process loses no mark, and a power cut those of the last moment.
class HighWaterFile {
 public:
  // Opens or creates the file. Errors: DataLoss (neither slot is sound), those of the system.
  static absl::StatusOr<std::unique_ptr<HighWaterFile>> Open(const std::string& path);
  // Reads the mark of a file that nobody need have opened. nullopt: the file is missing or empty.
  static absl::StatusOr<std::optional<HighWater>> Read(const std::string& path);
  ~HighWaterFile();  // syncs what was written last
  HighWaterFile(const HighWaterFile&) = delete;
  HighWaterFile& operator=(const HighWaterFile&) = delete;

  // nullopt: a new file.
  const std::optional<HighWater>& mark() const { return mark_; }
  // Errors: this write or an earlier sync has failed.
  absl::Status Write(const HighWater& mark) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  HighWaterFile(std::string path, int fd, std::optional<HighWater> mark);
  void SyncWhatIsWritten() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string path_;
  const int fd_;
  std::optional<HighWater> mark_;
  absl::Mutex mutex_;
  TimedCondVar changed_;                          // after a change of written_ or stopping_
  bool written_ ABSL_GUARDED_BY(mutex_) = false;  // since the last sync
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // of a sync
  std::thread syncs_;
};

}  // namespace traind
