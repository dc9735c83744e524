// Loads the media of the batches to come while the one before them is trained on.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "worker/data/media_source.h"

namespace traind {

// One batch ahead, on a thread of its own.
// Threads: confined to one.
class MediaLoader {
 public:
  explicit MediaLoader(std::shared_ptr<const MediaSource> source);
  ~MediaLoader();
  MediaLoader(const MediaLoader&) = delete;
  MediaLoader& operator=(const MediaLoader&) = delete;

  // Batches are parts of `rows` from now on. seed: MediaRequest's.
  void SetOrder(std::vector<int32_t> rows, uint64_t seed);
  // Those of rows begin..begin+count-1 of the order; then loads as many that follow.
  // The batch is valid until the next call of Take or SetOrder.
  absl::StatusOr<const MediaBatch*> Take(int64_t begin, int64_t count);

 private:
  struct Part {
    int64_t begin = 0, count = 0;
    bool operator==(const Part& other) const {
      return begin == other.begin && count == other.count;
    }
  };
  absl::Status Load(const Part& part, MediaBatch& out) const;
  void Run();
  // Waits until nothing is being loaded.
  void Settle();

  const std::shared_ptr<const MediaSource> source_;
  std::vector<int32_t> rows_;  // changed only while nothing is being loaded
  uint64_t seed_ = 0;
  MediaBatch current_;
  MediaBatch next_;  // the thread's while loading_

  absl::Mutex mutex_;
  bool loading_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  Part part_;            // of next_; count 0: there is none
  absl::Status loaded_;  // how next_ came out
  std::thread thread_;
};

}  // namespace traind
