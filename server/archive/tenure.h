// The time in which a traind has an archive: how it begins, goes on and ends.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/timed_wait.h"
#include "server/archive/archive.h"
#include "server/archive/file_mirror.h"
#include "server/archive/follower.h"
#include "server/archive/lease_core.h"
#include "server/archive/log_copy.h"
#include "server/archive/log_object.h"

namespace traind {

struct TenureOptions {
  std::string artifacts;  // a folder's absolute path, or s3://BUCKET/PREFIX
  std::string state_dir;  // absolute; this process has its lock
  // Waits until it may take over; else a lease of another traind is an error.
  bool standby = false;
  LeaseTimes times;
  // Files of the state folder, besides the database, that a successor gets: their names.
  std::vector<std::string> files;
  // Logs of the state folder that a successor goes on with. Of one that is killed the last second
  // may be missing there.
  std::vector<LogNames> logs;
  // Moves the write-ahead log of the database at that path into it, and closes it.
  std::function<absl::Status(const std::string& path)> fold;
  // Called once, when another traind is found to have the archive: on which host.
  std::function<void(const std::string& host)> waits = [](const std::string&) {};
  std::function<bool()> stop = [] { return false; };  // ends the wait
};

// Threads: Begin, Release and the destructor from one; Check is safe.
class Tenure {
 public:
  // Takes the archive: makes it if there is none, gets the database from it if another traind has
  // had it since this folder's did, and begins an epoch. The folders of Jobs are in the artifacts'
  // folder from then on, with links in the state folder; a bucket gets copies of their files.
  // Errors: Aborted (another traind has it, and this is no standby), Cancelled (stop() was true),
  // FailedPrecondition (the state folder has other Jobs), DataLoss, those of the system.
  static absl::StatusOr<std::unique_ptr<Tenure>> Begin(TenureOptions options, const Clock* clock);
  ~Tenure();  // as if the process was killed, unless it was released

  const Archive& archive() const { return archive_; }
  const std::string& holder() const { return holder_; }
  // The entry with which the epoch began; the database is what the log says up to there.
  const ArchivePosition& begun() const { return begun_; }
  // The database was made of the archive.
  bool copied() const { return copied_; }

  // Copies the small files of these Jobs to a bucket (FileMirror::GiveJobs); in a folder they are
  // already. Threads: safe.
  void GiveFilesOf(const std::vector<std::string>& jobs) const {
    if (mirror_ != nullptr) mirror_->GiveJobs(jobs);
  }
  // FailedPrecondition: the lease was not renewed in time, so the process must end at once.
  absl::Status Check() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets another traind take over at once. REQUIRES: everything is written.
  void Release();

 private:
  Tenure(TenureOptions options, const Clock* clock, Archive archive);
  absl::Status ReadMarker();
  absl::Status WriteMarker() const;
  // Whether the state folder's database is the one that the log tells of.
  bool IsCurrent(const ArchivePosition& end) const;
  absl::Status Wait();
  // One look; true: the archive is ours.
  absl::StatusOr<bool> Look();
  absl::Status Claim(ArchivePosition end);
  absl::Status ReplaceDatabase();
  absl::Status TakeFiles() const;
  absl::Status TakeLogs() const;
  void GiveFiles();
  void GiveLogs(int64_t most_bytes);
  absl::Status TryToGiveLogs(int64_t most_bytes);
  void Run();
  LeaseNote Note() const;

  const TenureOptions options_;
  const Clock* const clock_;
  const Archive archive_;
  std::string name_;    // of the state folder, random
  std::string holder_;  // of it on this host
  std::string host_;
  std::string marked_archive_;  // of which the state folder's database is; empty: of none
  int64_t marked_epoch_ = 0;
  ArchivePosition end_;  // as far as the log was read
  std::unique_ptr<Follower> follower_;
  std::unique_ptr<LeaseWatch> watch_;
  bool told_ = false;
  bool copied_ = false;
  ArchivePosition begun_;
  std::vector<std::string> given_;  // of the files: what the archive has, by their order
  std::vector<std::unique_ptr<LogCopy>> log_copies_;     // in a folder
  std::vector<std::unique_ptr<LogObject>> log_objects_;  // in a bucket
  std::unique_ptr<FileMirror> mirror_;                   // null: the archive is in a folder
  bool logs_fail_ = false;
  int64_t beat_ = 0;

  mutable absl::Mutex mutex_;
  TimedCondVar changed_;
  mutable std::unique_ptr<LeaseTenure> lease_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread renews_;
};

// Makes the folders of Jobs, of the cache and of uploads links into the artifacts' folder.
// FailedPrecondition: the state folder has files in one of them.
absl::Status LinkFolders(const std::string& state_dir, const std::string& artifacts);

}  // namespace traind
