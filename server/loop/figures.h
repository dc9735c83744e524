// Counters and durations of the running daemon, for those who watch it.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "server/domain/job.h"

namespace traind {

// The upper ends of a histogram's buckets, in seconds; a last one has no end.
inline constexpr std::array<double, 12> kBucketEnds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                                       0.05,   0.1,   0.25,   1,     2.5,  10};

struct DurationCounts {
  std::array<uint64_t, kBucketEnds.size() + 1> buckets{};  // each without those below it
  uint64_t count = 0;
  double sum_s = 0;

  void Add(absl::Duration duration);
};

// Durations of calls by method, and how often each outcome came.
// Threads: safe.
class CallFigures {
 public:
  struct Counts {
    std::map<std::string, DurationCounts> durations;                   // by method
    std::map<std::pair<std::string, std::string>, uint64_t> outcomes;  // by method and code
  };

  void Add(const std::string& method, const std::string& code, absl::Duration duration)
      ABSL_LOCKS_EXCLUDED(mutex_);
  Counts counts() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  Counts counts_ ABSL_GUARDED_BY(mutex_);
};

// Figures of the control loop since the start of the process.
// Threads: safe.
class LoopFigures {
 public:
  struct Counts {
    DurationCounts turns;    // to decide, commit and act
    DurationCounts commits;  // of the store
    uint64_t events = 0;
    int64_t log_bytes = 0;  // of the write-ahead log, as of the last turn
    std::map<std::pair<JobState, JobEndReason>, uint64_t> ended;
    // Counts Jobs with a deadline that were not cancelled.
    uint64_t deadlines_met = 0;
    uint64_t deadlines_missed = 0;
  };

  void AddTurn(size_t events, absl::Duration duration) ABSL_LOCKS_EXCLUDED(mutex_);
  void AddCommit(absl::Duration duration) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteLog(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // REQUIRES: the Job is terminal.
  void AddEnded(const Job& job) ABSL_LOCKS_EXCLUDED(mutex_);
  Counts counts() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  Counts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace traind
