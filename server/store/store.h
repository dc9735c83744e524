// The store: the only truth that outlives a process. One method = one transaction.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/domain/job.h"
#include "server/domain/quota.h"

namespace traind {

// All that one turn of the control loop changed.
struct Mutations {
  // Whole Jobs, new or changed, with their tasks, plans, decisions and attempts.
  // The store writes rows that differ from what it wrote last.
  std::vector<std::shared_ptr<const Job>> jobs;
  std::vector<std::pair<std::string, Checkpoint>> checkpoints;  // job, checkpoint
  std::vector<MetricPoint> metrics;
  // A line of the Job's history besides what follows from `jobs` (append-only).
  struct Event {
    std::string job;
    absl::Time at;
    std::string kind;  // state, attempt_started, attempt_ended, checkpoint, prediction, ...
    std::string detail;
  };
  std::vector<Event> events;
  struct WorkerRow {
    std::string id, hostname;
    absl::Time last_seen;
    std::vector<Slot> slots;  // empty: as they were
  };
  std::vector<WorkerRow> workers;
  std::vector<Quota> quotas;  // new, or changed
  std::vector<QuotaSubject> removed_quotas;
  int64_t last_attempt = 0;             // > 0: the highest Attempt number handed out
  std::optional<absl::Time> last_seen;  // wall clock, for restarts after a clock jump
  // Someone waits for this to be on disk. false: may be lost in a power cut (metrics).
  bool durable = false;

  bool empty() const {
    return jobs.empty() && checkpoints.empty() && metrics.empty() && events.empty() &&
           workers.empty() && quotas.empty() && removed_quotas.empty() && last_attempt == 0 &&
           !last_seen;
  }
};

// What a start needs.
struct Snapshot {
  std::vector<Job> active;  // every Job that is not terminal, oldest first
  int64_t last_attempt = 0;
  absl::Time last_seen = absl::InfinitePast();
  std::vector<Quota> quotas;
  std::vector<Usage> usage;  // of folds' Attempts that ended within their periods
};

struct JobFilter {
  std::vector<JobState> states;               // empty: all
  std::map<std::string, std::string> labels;  // all must match
  int limit = 100;
  std::string page_token;  // of the page before; empty: first
};
struct JobPage {
  std::vector<Job> jobs;        // newest first; without decisions and attempts
  std::string next_page_token;  // empty: the last page
};
struct StoredMetric {
  int64_t sequence = 0;
  MetricPoint point;
};

// See Store::FindTrained.
inline constexpr size_t kMostTrained = 8;

// Threads: Commit, CheckpointLog, LogBytes, Reopen and LoadSnapshot belong to the control loop's
// thread; the rest is safe from any (readers have connections of their own and
// see what is committed).
class Store {
 public:
  virtual ~Store() = default;

  // All or nothing. Checks what a bug or a stale writer would break: a terminal
  // Job never changes, a Job's version grows, last_attempt grows, a checkpoint's or member's
  // Attempt is the current one of its task (else Aborted and nothing is written).
  // ResourceExhausted: disk full, nothing was written. Any other failure to write:
  // the outcome is unknown - reopen and read again before going on.
  virtual absl::Status Commit(const Mutations& mutations) = 0;
  // Moves the write-ahead log into the database; cheap if there is little.
  virtual absl::Status CheckpointLog() = 0;
  // Size of that log.
  virtual int64_t LogBytes() const { return 0; }
  // After a Commit whose outcome is unknown: lets go of all files and opens them
  // again. LoadSnapshot is next.
  virtual absl::Status Reopen() { return absl::OkStatus(); }
  virtual absl::StatusOr<Snapshot> LoadSnapshot() = 0;

  virtual absl::StatusOr<Job> GetJob(const std::string& id) = 0;  // NotFound
  // The newest Jobs of that name, at most two.
  virtual absl::StatusOr<std::vector<std::string>> FindByName(const std::string& name) = 0;
  // NotFound: unknown.
  virtual absl::StatusOr<Job> FindByRequest(const std::string& owner,
                                            const std::string& request_id) = 0;
  virtual absl::StatusOr<JobPage> ListJobs(const JobFilter& filter) = 0;
  // name: of which metric; empty: of all.
  virtual absl::StatusOr<std::vector<StoredMetric>> GetMetrics(const std::string& job,
                                                               int64_t after_sequence, int limit,
                                                               const std::string& name) = 0;
  virtual absl::StatusOr<std::vector<Checkpoint>> ListCheckpoints(const std::string& job) = 0;
  // Of folds' Attempts that ended after `since`.
  virtual absl::StatusOr<std::vector<Usage>> UsageSince(absl::Time since) = 0;
  // Whether there is a Job of that owner.
  virtual absl::StatusOr<bool> HasOwner(const std::string& owner) = 0;
  // Whole Jobs whose folds fit a Job with that cache_key on data of that content, the
  // newest first, at most eight.
  virtual absl::StatusOr<std::vector<Job>> FindTrained(const std::string& cache_key,
                                                       const std::string& content_sha256) = 0;
  // The newest finished Job's measured speed among those with that speed_key, for estimates
  // before anything was measured: on data of that content, else of that size; NotFound.
  virtual absl::StatusOr<Measured> RecordedSpeed(const std::string& speed_key,
                                                 const std::string& content_sha256,
                                                 int64_t train_bytes) = 0;
};

}  // namespace traind
