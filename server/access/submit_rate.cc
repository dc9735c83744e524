#include "server/access/submit_rate.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

namespace traind {

SubmitRate::SubmitRate(double jobs_per_s)
    : jobs_per_s_(jobs_per_s), most_(std::max(1.0, jobs_per_s * absl::ToDoubleSeconds(kBurst))) {}

absl::Status SubmitRate::Take(const std::map<std::string, int>& jobs, absl::Time now) {
  if (jobs_per_s_ <= 0) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  if (buckets_.size() >= forget_at_) ForgetFull(now);
  double most_missing = 0;
  const std::pair<const std::string, int>* refused = nullptr;  // who must wait the longest
  for (const auto& share : jobs) {
    const double needed = std::min<double>(share.second, most_);
    const double missing = needed - BucketOf(share.first, now).jobs;
    if (missing <= most_missing) continue;
    most_missing = missing;
    refused = &share;
  }
  if (refused == nullptr) {
    for (const auto& [owner, count] : jobs) BucketOf(owner, now).jobs -= count;
    return absl::OkStatus();
  }
  const absl::Duration wait = absl::Seconds(most_missing / jobs_per_s_);
  return absl::ResourceExhaustedError(
      absl::StrCat("submit-rate: ", refused->first, " has submitted more than ", jobs_per_s_,
                   " Jobs a second (--submit-rate of traind) for a minute; these ", refused->second,
                   " may come in ", absl::FormatDuration(absl::Ceil(wait, absl::Milliseconds(1)))));
}

SubmitRate::Bucket& SubmitRate::BucketOf(const std::string& owner, absl::Time now) {
  Bucket& bucket = buckets_.try_emplace(owner, Bucket{most_, now}).first->second;
  Fill(bucket, now);
  return bucket;
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
