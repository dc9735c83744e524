// The Jobs as readers see them: immutable snapshots, replaced after each commit.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/container/flat_hash_map.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/timed_wait.h"
#include "server/domain/job.h"

namespace traind {

// Holds active Jobs, and terminal ones for a short while, so that whoever watches a Job sees its
// end here; older ones are read from the store.
// Threads: safe.
class JobViews {
 public:
  // A snapshot and a counter of its replacements. Live figures change the snapshot without changing
  // the Job's version.
  struct View {
    std::shared_ptr<const Job> job;
    uint64_t change = 0;
  };

  void Update(const std::vector<std::shared_ptr<const Job>>& jobs) ABSL_LOCKS_EXCLUDED(mutex_);
  // Forgets a terminal Job whose snapshot is no longer right; the store has it.
  void Remove(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns a null job if the Job is neither active nor recently terminal.
  View Find(const std::string& id) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns all active Jobs.
  std::vector<std::shared_ptr<const Job>> Active() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the ids of the Jobs that are recently terminal and whose view was replaced after
  // `since`, in the order in which they ended.
  std::vector<std::string> Ended(uint64_t since) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until the view's change exceeds `since`, the view is gone, Close is called, or the
  // timeout is over.
  View Wait(const std::string& id, uint64_t since, absl::Duration timeout) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until some view was replaced after `since`, Close is called, or the timeout is over;
  // returns the number of the last replacement. It is the change of the view that was replaced.
  uint64_t WaitAny(uint64_t since, absl::Duration timeout) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends every Wait, present and future.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);
  bool closed() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr size_t kKeepTerminal = 256;

  mutable absl::Mutex mutex_;
  mutable TimedCondVar replaced_;  // after a change of views_ or closed_
  absl::flat_hash_map<std::string, View> views_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> terminal_ ABSL_GUARDED_BY(mutex_);  // oldest first
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace traind
