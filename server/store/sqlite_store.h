// Keeps the store in an SQLite database (write-ahead log).
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/container/flat_hash_map.h>
#include <absl/synchronization/mutex.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "server/archive/archive_writer.h"
#include "server/store/event_rows.h"
#include "server/store/high_water.h"
#include "server/store/log_pages.h"
#include "server/store/sqlite.h"
#include "server/store/store.h"

namespace traind {

struct SqliteStoreOptions {
  // How many readers work at the same time; more wait for their turn.
  int readers = 4;
  // A Commit that would make the database larger is ResourceExhausted; 0: no limit.
  int64_t max_bytes = 0;
  // The integrity of a larger database is checked in the background, because that takes a second or
  // more for each GiB. If it is damaged, commits are DataLoss from then on.
  int64_t most_bytes_checked_at_start = 64 << 20;
  // Opens a database that is behind its high-water mark. What it lacks is lost.
  bool accept_loss = false;
  // Gets what each commit changes, before that is acknowledged; it outlives the store. The database
  // is as the archive's log says, and its own log is empty. Null: there is no archive.
  ArchiveWriter* archive = nullptr;
  // Called before the archive gets a change by which one learns of files: of these Jobs. May be
  // empty.
  std::function<void(const std::vector<std::string>& jobs)> before_archive;
  // The database is a copy, and Workers may run Attempts of which it does not know: their numbers
  // are not used again.
  bool skip_attempts = false;
};

// There is one writing connection, which only the thread that opened it uses. It alone moves the
// log into the database, because SQLite before 3.51.3 may lose commits when two connections do that
// at once. Readers have read-only connections, kept in a pool. Threads and errors: as for Store.
class SqliteStore final : public Store {
 public:
  // Creates the database (mode 0600), or checks its integrity quickly and migrates it to the newest
  // schema. Errors name the file: FailedPrecondition (of a newer traind, or behind its high-water
  // mark), DataLoss (damaged, or not a database), PermissionDenied (not writable),
  // ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(const std::string& path,
                                                           SqliteStoreOptions options = {});
  // Ends the check and empties the log. REQUIRES: no reader is at work any more.
  ~SqliteStore() override;

  // The mark of the database at `path` is in the file of this name.
  static std::string MarkPath(const std::string& path);

  absl::Status Commit(const Mutations& mutations) override;
  absl::Status CheckpointLog() override;
  int64_t LogBytes() const override;
  int64_t HeldLogBytes() const override;
  absl::StatusOr<Snapshot> LoadSnapshot() override;

  std::vector<absl::StatusOr<KnownSubmit>> FindSubmits(
      const std::vector<SubmitKey>& submits) override;

  absl::StatusOr<Job> GetJob(const std::string& id) override;
  absl::StatusOr<JobStamp> StampOf(const std::string& id) override;
  absl::StatusOr<std::vector<std::string>> FindByName(const std::string& name) override;
  absl::StatusOr<Job> FindByRequest(const std::string& owner,
                                    const std::string& request_id) override;
  absl::StatusOr<std::vector<std::optional<KnownRequest>>> FindRequests(
      const std::vector<RequestKey>& requests) override;
  absl::StatusOr<JobPage> ListJobs(const JobFilter& filter) override;
  absl::StatusOr<std::vector<StoredMetric>> GetMetrics(const std::string& job,
                                                       int64_t after_sequence, int limit,
                                                       const std::string& name) override;
  absl::StatusOr<std::vector<StoredEvent>> GetEvents(const std::string& job, int64_t after_sequence,
                                                     int limit) override;
  absl::StatusOr<std::vector<Checkpoint>> ListCheckpoints(const std::string& job) override;
  absl::StatusOr<std::vector<Answer>> ListAnswers(const std::string& job) override;
  absl::StatusOr<std::vector<AttemptUsage>> UsageSince(absl::Time since) override;
  absl::StatusOr<bool> HasOwner(const std::string& owner) override;
  absl::StatusOr<std::vector<Job>> FindTrained(const std::string& cache_key,
                                               const std::string& content_sha256) override;
  absl::StatusOr<Measured> RecordedSpeed(const std::string& speed_key,
                                         const std::string& content_sha256,
                                         int64_t train_bytes) override;
  absl::StatusOr<std::vector<EndedJob>> ListEnded() override;
  absl::StatusOr<std::vector<std::string>> ListDeleting(absl::Time now) override;
  absl::StatusOr<absl::Time> FindDeleted(const std::string& id) override;
  absl::StatusOr<bool> IsInASpec(const std::string& text) override;

 private:
  // The database's state of a Job that may still change.
  struct Written {
    std::shared_ptr<const Job> job;
    int64_t number = 0;
    std::optional<EventChain> events;  // nullopt: not looked up yet
    int64_t metrics = -1;              // the highest sequence; -1: not looked up yet
  };
  using Staged = absl::flat_hash_map<std::string, Written>;

  SqliteStore(std::string path, SqliteStoreOptions options);
  absl::Status OpenWriter();
  // Adds checksums to a database of an earlier version; a later one must have them.
  absl::Status CheckChecksums();
  absl::Status ReadMark();
  // Compares the database with its high-water mark.
  absl::Status OpenMark();
  // Calls before_archive for the Jobs whose files these changes tell of.
  void TellOfFiles(const Mutations& mutations) const;
  // Adds to the archive what was committed since the last time.
  absl::Status Ship();
  // Begins a copy for the archive where it wants one and the log is empty.
  void BeginBase();
  // Runs on the thread of the check.
  void CheckInBackground() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status damage() const ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Status Write(const Mutations& mutations, Staged& staged);
  absl::Status WriteJob(const std::shared_ptr<const Job>& job, Staged& staged);
  absl::Status AppendEvent(Written& written, const Mutations::Event& event);
  absl::Status AppendMetric(Written& written, const MetricPoint& point);
  absl::Status WriteWorker(const Mutations::WorkerRow& worker);
  absl::StatusOr<std::vector<WorkerNote>> ReadNotedWorkers();
  absl::Status WriteQuotas(const Mutations& mutations);
  absl::Status MoveTimes(absl::Duration step);
  absl::Status WriteTotals(const Mutations& mutations, const HighWater& mark);
  // Returns the mark of a database to which these changes are made. A commit that may be lost in a
  // power cut has no mark of its own.
  HighWater NextMark(const Mutations& mutations) const;
  // NotFound: no such Job.
  absl::StatusOr<Written*> Find(const std::string& id, Staged& staged);

  absl::StatusOr<KnownSubmit> FindSubmit(const SubmitKey& submit);
  // Calls `read` with a pooled connection, inside a read transaction.
  // Without conditions: all Jobs below that number, in one query.
  absl::StatusOr<JobPage> ListAllJobs(const JobFilter& filter, int64_t before);
  absl::Status WithReader(const std::function<absl::Status(sqlite::Connection&)>& read);
  bool ReaderFree() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return readers_at_work_ < options_.readers;
  }

  const std::string path_;
  const SqliteStoreOptions options_;

  // The following members belong to the writer.
  std::unique_ptr<sqlite::Connection> db_;
  bool synchronous_full_ = false;
  HighWater mark_;  // of the last durable commit
  std::unique_ptr<HighWaterFile> mark_file_;
  absl::flat_hash_map<std::string, Written> written_;
  std::unique_ptr<LogPages> log_;  // null: no archive
  // Read by copies for the archive. It is closed last: closing it ends all locks of this process on
  // the file.
  int database_fd_ = -1;

  mutable absl::Mutex mutex_;
  int readers_at_work_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<sqlite::Connection>> idle_readers_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  sqlite::Connection* checking_ ABSL_GUARDED_BY(mutex_) = nullptr;  // while the check runs
  absl::Status damage_ ABSL_GUARDED_BY(mutex_);                     // that the check found
  std::thread check_;
};

}  // namespace traind
