// How many Jobs each owner may submit a second.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <cstddef>
#include <map>
#include <string>

namespace traind {

// A bucket for each owner, which fills at the rate and holds what a minute brings. A call that
// finds enough in it takes all its Jobs; one that wants more than a bucket holds waits until it is
// full, and leaves it owing the rest. Threads: safe.
class SubmitRate {
 public:
  static constexpr absl::Duration kBurst = absl::Minutes(1);

  // jobs_per_s: of each owner; 0: there is no limit.
  explicit SubmitRate(double jobs_per_s);

  // jobs: of each owner of one call, which is taken for all or for none. ResourceExhausted: an
  // owner has submitted too many; it names the limit and says when the same call will be taken. A
  // time before that of an earlier call counts as that one's.
  absl::Status Take(const std::map<std::string, int>& jobs, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Take(const std::string& owner, int jobs, absl::Time now) {
    return Take({{owner, jobs}}, now);
  }

  // Owners whose buckets are not known to be full.
  size_t owners() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Bucket {
    double jobs = 0;  // that may be submitted; below 0: owed
    absl::Time at;    // when that was so
  };
  // The owner's bucket as it is now.
  Bucket& BucketOf(const std::string& owner, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fill(Bucket& bucket, absl::Time now) const;
  static constexpr size_t kLeastForgotten = 1024;
  // Forgets buckets that are full, which are as new ones.
  void ForgetFull(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const double jobs_per_s_, most_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Bucket> buckets_ ABSL_GUARDED_BY(mutex_);
  size_t forget_at_ ABSL_GUARDED_BY(mutex_) = kLeastForgotten;  // so many buckets
};

}  // namespace traind
