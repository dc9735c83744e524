// Keeps the store's contract without a disk, for tests and simulation.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/store/store.h"

namespace traind {

// Threads and errors: as for Store. Its content is lost when it is destroyed.
class MemoryStore final : public Store {
 public:
  absl::Status Commit(const Mutations& mutations) override;
  absl::Status CheckpointLog() override { return absl::OkStatus(); }
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

  // Makes every later Commit fail with this status; with OK, commits work again.
  void FailCommits(absl::Status status);

 private:
  struct Row {
    std::shared_ptr<const Job> job;
    std::vector<Checkpoint> checkpoints;
    std::map<int, Answer> answers;  // by number
    std::vector<StoredMetric> metrics;
    std::vector<StoredEvent> events;
    int64_t last_event = 0;  // its sequence
    bool deleting = false;
    bool purged = false;  // only its usage is left
  };
  absl::Status Check(const Mutations& mutations) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<AttemptUsage> UsageAfter(absl::Time since) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const Row* Find(const std::string& id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Retain(const Mutations& mutations) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::vector<Row> rows_ ABSL_GUARDED_BY(mutex_);  // in the order of acceptance
  std::map<std::string, size_t> by_id_ ABSL_GUARDED_BY(mutex_);
  int64_t last_attempt_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time last_seen_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Duration awaited_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, WorkerNote> workers_ ABSL_GUARDED_BY(mutex_);
  std::map<QuotaSubject, Quota> quotas_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, absl::Time> deleted_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace traind
