#include "server/access/submit_rate.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

namespace traind {

SubmitRate::SubmitRate(double jobs_per_s)
    : jobs_per_s_(jobs_per_s), most_(std::max(1.0, jobs_per_s * absl::ToDoubleSeconds(kBurst))) {}

absl::Status SubmitRate::Take(const std::string& owner, int jobs, absl::Time now) {
  if (jobs_per_s_ <= 0) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  if (buckets_.size() >= forget_at_) ForgetFull(now);
  Bucket& bucket = buckets_.try_emplace(owner, Bucket{most_, now}).first->second;
  Fill(bucket, now);
  const double needed = std::min<double>(jobs, most_);
  if (bucket.jobs >= needed) {
    bucket.jobs -= jobs;
    return absl::OkStatus();
  }
  const absl::Duration wait = absl::Seconds((needed - bucket.jobs) / jobs_per_s_);
  return absl::ResourceExhaustedError(
      absl::StrCat("submit-rate: ", owner, " has submitted more than ", jobs_per_s_,
                   " Jobs a second (--submit-rate of traind) for a minute; these ", jobs,
                   " may come in ", absl::FormatDuration(absl::Ceil(wait, absl::Milliseconds(1)))));
}

void SubmitRate::Fill(Bucket& bucket, absl::Time now) const {
  if (now <= bucket.at) return;
  bucket.jobs = std::min(most_, bucket.jobs + jobs_per_s_ * absl::ToDoubleSeconds(now - bucket.at));
  bucket.at = now;
}

void SubmitRate::ForgetFull(absl::Time now) {
  for (auto it = buckets_.begin(); it != buckets_.end();) {
    Fill(it->second, now);
    if (it->second.jobs >= most_) {
      buckets_.erase(it++);
    } else {
      ++it;
    }
  }
  forget_at_ = std::max(kLeastForgotten, 2 * buckets_.size());
}

size_t SubmitRate::owners() const {
  absl::MutexLock lock(&mutex_);
  return buckets_.size();
}

}  // namespace traind
