#include "server/retention/retention_plan.h"

#include <absl/container/flat_hash_set.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

namespace traind {
namespace {

std::string Days(absl::Duration age) { return absl::StrCat(absl::ToInt64Hours(age) / 24, " days"); }

// The state folder as it will be once the items collected so far are gone.
class Planner {
 public:
  Planner(const StateContent& state, const RetentionLimits& limits, absl::Time now)
      : state_(state), limits_(limits), now_(now) {
    for (const JobAtWork& job : state.at_work) {
      needed_.insert(job.from);
      needed_.insert(job.models_from);
      if (!job.reuses.empty()) reused_.insert(job.reuses);
      any_table_ |= job.reads_data;
      tables_.insert(job.table);
    }
    bytes_ = state.other_bytes;
    for (const JobKept& job : state.kept) bytes_ += job.bytes;
    for (const CacheEntry& entry : state.cache) bytes_ += entry.bytes;
    job_gone_.resize(state.kept.size());
    interim_gone_.resize(state.kept.size());
    cache_gone_.resize(state.cache.size());
    for (size_t i = 0; i < state.cache.size(); ++i) by_use_.push_back(i);
    std::stable_sort(by_use_.begin(), by_use_.end(), [&](size_t a, size_t b) {
      return state.cache[a].last_used < state.cache[b].last_used;
    });
  }

  std::vector<GarbageItem> Run() {
    DropByAge();
    DropByCount();
    DropByBytes();
    return std::move(items_);
  }

 private:
  bool IsNeeded(const JobKept& job) const {
    return needed_.contains(job.id) || (!job.cache_key.empty() && reused_.contains(job.cache_key));
  }
  bool MayGo(const JobKept& job) const { return !job.pinned && !IsNeeded(job); }
  bool MayGo(const CacheEntry& entry) const {
    return !any_table_ && !entry.in_a_spec && !tables_.contains(entry.key);
  }

  void DropJob(size_t i, std::string why) {
    const JobKept& job = state_.kept[i];
    if (job_gone_[i] || !MayGo(job)) return;
    job_gone_[i] = true;
    ++jobs_gone_;
    const int64_t bytes = interim_gone_[i] ? job.bytes - job.interim_bytes : job.bytes;
    Drop({Garbage::kJob, job.id, bytes, std::move(why)});
  }
  void DropInterim(size_t i, std::string why) {
    const JobKept& job = state_.kept[i];
    // A Job at work may read an Attempt that had no part in the last Prediction.
    if (job_gone_[i] || interim_gone_[i] || job.interim_bytes == 0 || IsNeeded(job)) return;
    interim_gone_[i] = true;
    Drop({Garbage::kInterim, job.id, job.interim_bytes, std::move(why)});
  }
  void DropCache(size_t i, std::string why) {
    const CacheEntry& entry = state_.cache[i];
    if (cache_gone_[i] || !MayGo(entry)) return;
    cache_gone_[i] = true;
    Drop({Garbage::kCache, entry.key, entry.bytes, std::move(why)});
  }
  void Drop(GarbageItem item) {
    bytes_ -= item.bytes;
    freed_ += item.bytes;
    items_.push_back(std::move(item));
  }

  void DropByAge() {
    for (size_t i = 0; i < state_.cache.size(); ++i) {
      if (now_ - state_.cache[i].last_used <= limits_.cache_age) continue;
      DropCache(i, absl::StrCat("not used for ", Days(limits_.cache_age)));
    }
    for (size_t i = 0; i < state_.kept.size(); ++i) {
      const JobKept& job = state_.kept[i];
      const absl::Duration age = now_ - job.ended_at;
      if (age > limits_.job_age) {
        DropJob(i, absl::StrCat("ended more than ", Days(limits_.job_age), " ago"));
      }
      if (job_gone_[i]) continue;
      if (age > limits_.interim_age) DropInterim(i, "no longer needed");
      if (age > limits_.history_age && job.has_history && !job.pinned) {
        Drop({Garbage::kHistory, job.id, 0,
              absl::StrCat("ended more than ", Days(limits_.history_age), " ago")});
      }
    }
  }

  void DropByCount() {
    for (size_t i = 0; i < state_.kept.size(); ++i) {
      const auto left = static_cast<int64_t>(state_.kept.size()) - jobs_gone_;
      if (left <= limits_.jobs) return;
      DropJob(i, absl::StrCat("more than ", limits_.jobs, " jobs are over"));
    }
  }

  bool TooLarge() const { return bytes_ > limits_.bytes; }
  bool TooFull() const { return state_.free_bytes + freed_ < limits_.free_bytes; }

  // Files that can be made again go first, then Jobs.
  void DropByBytes() {
    const char* const large = "the state folder is larger than its limit";
    const char* const full = "the disk is nearly full";
    for (const size_t i : by_use_) {
      if (!TooLarge() && !TooFull()) return;
      DropCache(i, TooLarge() ? large : full);
    }
    for (size_t i = 0; i < state_.kept.size(); ++i) {
      if (!TooLarge() && !TooFull()) return;
      DropInterim(i, TooLarge() ? large : full);
    }
    for (size_t i = 0; i < state_.kept.size() && TooLarge(); ++i) {
      if (state_.kept[i].bytes > 0) DropJob(i, large);
    }
  }

  const StateContent& state_;
  const RetentionLimits& limits_;
  const absl::Time now_;
  absl::flat_hash_set<std::string> needed_;  // Jobs
  absl::flat_hash_set<std::string> reused_;  // cache_key
  absl::flat_hash_set<std::string> tables_;
  bool any_table_ = false;
  std::vector<size_t> by_use_;  // of the cache, what was not used for longest in front
  std::vector<bool> job_gone_, interim_gone_, cache_gone_;
  int64_t jobs_gone_ = 0;
  int64_t bytes_ = 0, freed_ = 0;
  std::vector<GarbageItem> items_;
};

}  // namespace

std::vector<GarbageItem> PlanRetention(const StateContent& state, const RetentionLimits& limits,
                                       absl::Time now) {
  return Planner(state, limits, now).Run();
}

}  // namespace traind
