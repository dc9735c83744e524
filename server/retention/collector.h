// Deletes Jobs on request, and regularly what retention_plan.h lets go.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "common/base/timed_wait.h"
#include "server/loop/control_loop.h"
#include "server/retention/retention_plan.h"
#include "server/retention/state_files.h"
#include "server/store/store.h"

namespace traind {

struct CollectorOptions {
  std::string state_dir;  // absolute
  bool shared = false;    // other machines write into the state folder, too
  RetentionLimits limits;
  // Where limits.bytes is kNoLimit: the share of its file system that the state folder may take.
  double disk_share = 1;
  absl::Duration every = absl::Minutes(5);
  std::string log;  // a file in the state folder that others append to; empty: none
  // A larger log is rotated, and a quarter of so much is kept.
  int64_t most_log_bytes = 16 << 20;
  // For tests: called before each step of a deletion, after which the process may be killed.
  std::function<void()> before_step = [] {};
};

// The deletion of a Job has three steps, so that a process that is killed between any two of them
// finishes it at its next start: the store says durably that the Job is being deleted, its files
// go, its rows go.
// Threads: safe. Ownership: loop and store outlive the collector; the loop runs until Stop.
class Collector {
 public:
  Collector(CollectorOptions options, ControlLoop* loop, Store* store);
  ~Collector();

  // Starts a thread that collects now and then, and at first finishes deletions that were begun.
  void Start();
  // A collection that is under way ends before its next Job.
  void Stop() ABSL_LOCKS_EXCLUDED(wake_);
  bool stopping() const ABSL_LOCKS_EXCLUDED(wake_);

  // Deletes a Job that is over, also a pinned one, and returns the bytes of its files. A Job that
  // was deleted before is no error. Errors: NotFound; FailedPrecondition: it is not over, or
  // another Job uses it; Unavailable: one of its Attempts has not ended yet.
  absl::StatusOr<int64_t> Delete(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);

  // Deletes what may go, and returns it; dry_run: deletes nothing. Cancelled: Stop was called.
  absl::StatusOr<std::vector<GarbageItem>> Collect(bool dry_run) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_, wake_);
  absl::StatusOr<int64_t> DeleteLocked(const std::string& job)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status FinishDeletion(const std::string& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status FinishDeletions() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RemoveReturned() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<StateContent> ReadContent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AddKept(StateContent* content) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AddCache(StateContent* content) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddTheRest(StateContent* content) const;
  RetentionLimits LimitsOfDisk(int64_t* free_bytes) const;
  absl::Status Drop(const GarbageItem& item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds what needs no plan: files of killed writers, and the Worker's log if it has grown.
  void AddUnplanned(std::vector<GarbageItem>* items) const;
  absl::Status DropCache(const std::string& key);
  absl::Status DropInterim(const std::string& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ForgetHistories(const std::vector<GarbageItem>& items);
  // Waits for the loop's answer.
  static absl::Status Await(const std::function<void(ControlLoop::Answer)>& call);

  const CollectorOptions options_;
  ControlLoop* const loop_;
  Store* const store_;

  absl::Mutex mutex_;  // one deletion or collection at a time
  // The bytes of Jobs that have been over for a while are kept here, so that they are not read and
  // walked each time.
  std::map<std::string, FolderUse> uses_ ABSL_GUARDED_BY(mutex_);
  absl::Time uses_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();

  mutable absl::Mutex wake_;
  TimedCondVar stopped_;  // after a change of stopping_
  bool stopping_ ABSL_GUARDED_BY(wake_) = false;
  std::thread thread_;
};

}  // namespace traind
