#include "server/loop/figures.h"

#include <algorithm>

namespace traind {

void DurationCounts::Add(absl::Duration duration) {
  const double seconds = absl::ToDoubleSeconds(duration);
  const auto end = std::lower_bound(kBucketEnds.begin(), kBucketEnds.end(), seconds);
  ++buckets[static_cast<size_t>(end - kBucketEnds.begin())];
  ++count;
  sum_s += seconds;
}

void CallFigures::Add(const std::string& method, const std::string& code, absl::Duration duration) {
  absl::MutexLock lock(&mutex_);
  counts_.durations[method].Add(duration);
  ++counts_.outcomes[{method, code}];
}

CallFigures::Counts CallFigures::counts() const {
  absl::MutexLock lock(&mutex_);
  return counts_;
}

void LoopFigures::AddTurn(size_t events, absl::Duration duration) {
  absl::MutexLock lock(&mutex_);
  counts_.turns.Add(duration);
  counts_.events += events;
}

void LoopFigures::AddCommit(absl::Duration duration) {
  absl::MutexLock lock(&mutex_);
  counts_.commits.Add(duration);
}

void LoopFigures::NoteLog(int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  counts_.log_bytes = bytes;
}

void LoopFigures::AddEnded(const Job& job) {
  absl::MutexLock lock(&mutex_);
  ++counts_.ended[{job.state, job.end_reason}];
  if (job.deadline == absl::InfiniteFuture() || job.state == JobState::kCancelled) return;
  const bool met = job.state == JobState::kSucceeded && job.finished_at <= job.deadline;
  ++(met ? counts_.deadlines_met : counts_.deadlines_missed);
}

LoopFigures::Counts LoopFigures::counts() const {
  absl::MutexLock lock(&mutex_);
  return counts_;
}

}  // namespace traind
