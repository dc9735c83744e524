// The store: the only truth that outlives a process. Each method is one transaction.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/domain/job.h"
#include "server/domain/quota.h"
#include "server/domain/worker_mode.h"

namespace traind {

// All changes of one turn of the control loop.
struct Mutations {
  // Whole Jobs, new or changed, with their tasks, plans, decisions and attempts. The store writes
  // the rows that differ from those it wrote last.
  std::vector<std::shared_ptr<const Job>> jobs;
  std::vector<std::pair<std::string, Checkpoint>> checkpoints;  // job, checkpoint
  std::vector<MetricPoint> metrics;
  // A line of the Job's history that does not follow from `jobs` (append-only).
  struct Event {
    std::string job;
    absl::Time at;
    std::string kind;  // state, attempt_started, attempt_ended, checkpoint, prediction, ...
    std::string detail;
  };
  std::vector<Event> events;
  // Events of Jobs that may be over or deleted: of those that are not stored they are dropped.
  std::vector<Event> remarks;
  struct WorkerRow {
    std::string id, hostname;
    absl::Time last_seen;
    std::vector<Slot> slots;  // empty: unchanged
    WorkerMode mode = WorkerMode::kNone;
    absl::Time drain_at = absl::InfiniteFuture();
    absl::Duration silent = absl::ZeroDuration();  // WorkerNote
  };
  std::vector<WorkerRow> workers;
  std::vector<Quota> quotas;  // new or changed
  std::vector<QuotaSubject> removed_quotas;

  // These calls serve retention (server/retention); all are about Jobs that are over.
  struct Deletion {
    std::string job;
    absl::Time at;
  };
  std::vector<Deletion> deletions;  // from now on these Jobs exist only to be deleted
  // At most kPurgeRows rows of each of these Jobs go, which are being deleted; the Job goes last.
  // Attempts that a quota still counts stay until its period is over.
  std::vector<Deletion> purges;
  std::vector<std::string> forgotten;              // as many of their metrics and events go
  std::vector<std::pair<std::string, bool>> pins;  // job, pinned

  int64_t last_attempt = 0;             // > 0: the highest Attempt number in use
  std::optional<absl::Time> last_seen;  // wall clock, for restarts after a clock jump
  // The wall clock has stepped by this: the times of Jobs that are not terminal move with it,
  // except deadlines that the spec gives as a time of day. It comes alone or with last_seen.
  absl::Duration clock_step;
  // Snapshot::awaited.
  std::optional<absl::Duration> awaited;
  // Someone waits until this is on disk. false: it may be lost in a power cut (metrics).
  bool durable = false;

  bool empty() const {
    return jobs.empty() && checkpoints.empty() && metrics.empty() && events.empty() &&
           remarks.empty() && workers.empty() && quotas.empty() && removed_quotas.empty() &&
           deletions.empty() && purges.empty() && forgotten.empty() && pins.empty() &&
           last_attempt == 0 && !last_seen && !awaited && clock_step == absl::ZeroDuration();
  }
};

// Jobs that ended so long before the last stored time may have ended just before a kill.
inline constexpr absl::Duration kEndedLately = absl::Seconds(30);

// The data that traind reads when it starts.
struct Snapshot {
  std::vector<Job> active;  // every Job that is not terminal, oldest first
  int64_t last_attempt = 0;
  absl::Time last_seen = absl::InfinitePast();
  std::vector<Quota> quotas;
  std::vector<AttemptUsage> usage;  // of folds' Attempts that ended within UsageStart()
  std::vector<WorkerNote> workers;  // that are not open, or were silent
  // So long, in all its runs, traind has waited for Workers to come back after its start; a run
  // that has waited to the end begins this anew.
  absl::Duration awaited;
  // Ids of Jobs that were begun, and ended in the last kEndedLately before last_seen, oldest first.
  std::vector<std::string> ended_lately;
};

struct JobFilter {
  std::vector<JobState> states;               // empty: all
  std::map<std::string, std::string> labels;  // all must match
  int limit = 100;
  std::string page_token;  // from the previous page; empty: the first page
  // Where this returns a Job, it is listed as it is, and nothing of it is read.
  std::function<std::shared_ptr<const Job>(const std::string& id)> known = nullptr;
};
struct JobPage {
  // Newest first, never null; those that were read are without decisions and attempts. There may be
  // fewer than `limit`, or none, before the last page, because a page ends after a certain amount
  // of work.
  std::vector<std::shared_ptr<const Job>> jobs;
  std::string next_page_token;  // empty: the last page
};
// What names a request: ids belong to owners. An empty id names none.
struct RequestKey {
  std::string owner, request_id;
};
// The Job of a request.
struct KnownRequest {
  std::string id, asked_sha256;
};
// A Submit that is to be stored.
struct SubmitKey {
  RequestKey request;
  std::string id;  // of its Job
};
// The facts that a Submit has to know of earlier ones.
struct KnownSubmit {
  std::optional<Job> job;  // that has the request id
  bool id_is_taken = false;
};
// Tells whether what is stored about a Job has changed.
struct JobStamp {
  int64_t version = 0;
  int64_t metrics = 0;  // sequence of the last one
  bool pinned = false;

  bool operator==(const JobStamp& other) const {
    return version == other.version && metrics == other.metrics && pinned == other.pinned;
  }
};

struct StoredMetric {
  int64_t sequence = 0;
  MetricPoint point;
};

// A line of a Job's history.
struct StoredEvent {
  int64_t sequence = 0;  // from 1
  absl::Time at;
  std::string kind;
  std::string detail;
};

// A Job that is over, as retention sees it.
struct EndedJob {
  std::string id;
  absl::Time ended_at;
  bool pinned = false;
  bool has_history = false;  // metrics or events
  std::string cache_key;     // of its folds
  std::string table;         // relative to the state folder; empty: none
};

// See Mutations::purges.
inline constexpr int64_t kPurgeRows = 5000;
// So many ids of deleted Jobs are known, so that a repeated deletion succeeds.
inline constexpr int64_t kKnownDeleted = 10'000;

// See Store::FindTrained.
inline constexpr size_t kMostTrained = 8;
// Jobs of one name that FindByName returns.
inline constexpr size_t kMostNamed = 5;

// Keeps Jobs and their history. A Job that is being deleted is found by no method but ListDeleting
// and FindDeleted; what it used still counts for quotas.
// Threads: Commit, CheckpointLog, LogBytes, HeldLogBytes, LoadSnapshot and FindSubmits belong to
// the control loop's thread; the rest is safe from any thread (readers have connections of their
// own and see what is committed).
class Store {
 public:
  virtual ~Store() = default;

  // Commits all or nothing. It refuses changes that only a bug or a stale writer makes: a terminal
  // Job never changes, a Job's version grows, last_attempt grows, and the Attempt of a checkpoint
  // or member is the task's current one (else Aborted, and nothing is written). ResourceExhausted:
  // disk full, nothing was written. After any other failure the outcome is unknown: the process
  // must end, and the next one reads what was stored.
  virtual absl::Status Commit(const Mutations& mutations) = 0;
  // Moves the write-ahead log into the database; cheap if it is short.
  virtual absl::Status CheckpointLog() = 0;
  // Returns the size of that log.
  virtual int64_t LogBytes() const { return 0; }
  // Returns how much of it the last CheckpointLog could not move, because a reader that is not of
  // this store still needs the database as it was.
  virtual int64_t HeldLogBytes() const { return 0; }
  virtual absl::StatusOr<Snapshot> LoadSnapshot() = 0;

  // Looks for a Job of each request, and for one of each id, in one reading. No other reader delays
  // it. Returns as many results.
  virtual std::vector<absl::StatusOr<KnownSubmit>> FindSubmits(
      const std::vector<SubmitKey>& submits) = 0;

  virtual absl::StatusOr<Job> GetJob(const std::string& id) = 0;  // NotFound
  // Cheap. NotFound: there is no such Job.
  virtual absl::StatusOr<JobStamp> StampOf(const std::string& id) = 0;
  // Returns at most kMostNamed Jobs of that name, the newest ones.
  virtual absl::StatusOr<std::vector<std::string>> FindByName(const std::string& name) = 0;
  // NotFound: no such request is known.
  virtual absl::StatusOr<Job> FindByRequest(const std::string& owner,
                                            const std::string& request_id) = 0;
  // Returns what each request has made, in one reading; nullopt: no such request is known.
  virtual absl::StatusOr<std::vector<std::optional<KnownRequest>>> FindRequests(
      const std::vector<RequestKey>& requests) = 0;
  virtual absl::StatusOr<JobPage> ListJobs(const JobFilter& filter) = 0;
  // name: of the metric, or with a ':' in the end what its name begins with; empty: all metrics.
  virtual absl::StatusOr<std::vector<StoredMetric>> GetMetrics(const std::string& job,
                                                               int64_t after_sequence, int limit,
                                                               const std::string& name) = 0;
  // DataLoss: an event does not fit the digest that chains it to those before it.
  virtual absl::StatusOr<std::vector<StoredEvent>> GetEvents(const std::string& job,
                                                             int64_t after_sequence, int limit) = 0;
  virtual absl::StatusOr<std::vector<Checkpoint>> ListCheckpoints(const std::string& job) = 0;
  // Returns the Job's Predictions that have stood, as far as they were stored, by number.
  virtual absl::StatusOr<std::vector<Answer>> ListAnswers(const std::string& job) = 0;
  // Returns the usage of folds' Attempts that ended after `since`.
  virtual absl::StatusOr<std::vector<AttemptUsage>> UsageSince(absl::Time since) = 0;
  // Whether there is a Job of that owner.
  virtual absl::StatusOr<bool> HasOwner(const std::string& owner) = 0;
  // Returns whole Jobs whose folds fit a Job with that cache_key on data with that content, the
  // newest first, at most kMostTrained.
  virtual absl::StatusOr<std::vector<Job>> FindTrained(const std::string& cache_key,
                                                       const std::string& content_sha256) = 0;
  // Returns the measured speed of the newest finished Job with that speed_key, for estimates before
  // anything is measured: on data with that content, else of that size. NotFound: there is none.
  virtual absl::StatusOr<Measured> RecordedSpeed(const std::string& speed_key,
                                                 const std::string& content_sha256,
                                                 int64_t train_bytes) = 0;

  // Returns the Jobs that are over, those that ended first in front.
  virtual absl::StatusOr<std::vector<EndedJob>> ListEnded() = 0;
  // Returns the Jobs that are being deleted and have something to purge at `now`.
  virtual absl::StatusOr<std::vector<std::string>> ListDeleting(absl::Time now) = 0;
  // Returns when that Job's deletion began. NotFound: it was not deleted, or long ago.
  virtual absl::StatusOr<absl::Time> FindDeleted(const std::string& id) = 0;
  // Whether the resolved spec of a Job contains that text.
  virtual absl::StatusOr<bool> IsInASpec(const std::string& text) = 0;
};

}  // namespace traind
