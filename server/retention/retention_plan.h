// Decides what may go from a state folder: a function of what is there, the limits and the time.
// docs/design/state.md tells the rules for people.
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace traind {

inline constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

struct RetentionLimits {
  int64_t jobs = 1000;                                // that are over
  absl::Duration job_age = absl::InfiniteDuration();  // since their end
  absl::Duration history_age =
      absl::Hours(24 * 30);                         // of metrics and events, since their Job's end
  absl::Duration cache_age = absl::Hours(24 * 30);  // since the last use
  absl::Duration interim_age = absl::Hours(1);      // since their Job's end
  int64_t bytes = kNoLimit;                         // of the state folder
  // As long as the file system has less free space, caches and interim files go. Jobs do not go for
  // that, because others may have filled it.
  int64_t free_bytes = 0;
};

// A Job that is not over, and what it needs.
struct JobAtWork {
  std::string id;
  std::string from, models_from;  // Jobs whose folds or models it uses; empty: none
  std::string table;              // its key in the cache; empty: none yet
  bool reads_data = false;        // it may yet take any entry of the cache
  std::string reuses;             // its cache_key while it may take over folds; empty: it does not
};

// A Job that is over, and what it takes on disk.
struct JobKept {
  std::string id;
  absl::Time ended_at;
  bool pinned = false;
  bool has_history = false;
  std::string cache_key;
  int64_t bytes = 0;          // of its folder
  int64_t interim_bytes = 0;  // of these, what no Prediction, no reuse and no later predict needs
};

// The files of one key in the cache.
struct CacheEntry {
  std::string key;
  absl::Time last_used;
  int64_t bytes = 0;
  bool in_a_spec = false;  // a kept Job's model needs it to predict
};

struct StateContent {
  std::vector<JobAtWork> at_work;
  std::vector<JobKept> kept;  // those that ended first in front
  std::vector<CacheEntry> cache;
  int64_t other_bytes = 0;  // of the state folder: the database, Jobs at work, logs
  int64_t free_bytes = 0;   // of the file system
};

// The deletions that PlanRetention plans, and those that need no plan: files of killed writers,
// logs that have grown.
enum class Garbage { kCache, kInterim, kHistory, kJob, kTemporary, kLog };

struct GarbageItem {
  Garbage what = Garbage::kJob;
  std::string name;  // a Job's id, a key of the cache, or a path in the state folder
  int64_t bytes = 0;
  std::string why;
};

// Returns what has to go. Never in it: what a Job at work needs, pinned Jobs, the cache while a Job
// at work may yet take any of it. Each rule takes the oldest first and no more than its limit asks.
std::vector<GarbageItem> PlanRetention(const StateContent& state, const RetentionLimits& limits,
                                       absl::Time now);

}  // namespace traind
