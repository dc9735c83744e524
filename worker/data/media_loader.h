// Loads the media of the next batch while a model works on the current one.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "worker/data/media_source.h"

namespace traind {

// Loads one batch ahead on threads of its own, each of them a part of the batch. What a batch has
// does not depend on their number.
// Threads: confined to one. Errors: those of the source.
class MediaLoader {
 public:
  // Sets `staged` of a batch that has been loaded. Runs on the thread that loaded the last of it.
  using Stage = std::function<absl::Status(MediaBatch&)>;

  // training: see MediaRequest. threads: 0 loads nothing ahead, for what is a single batch.
  explicit MediaLoader(std::shared_ptr<const MediaSource> source, int threads = 1,
                       bool training = true, Stage stage = nullptr);
  ~MediaLoader();
  MediaLoader(const MediaLoader&) = delete;
  MediaLoader& operator=(const MediaLoader&) = delete;

  // From now on batches are parts of `rows`. seed: see MediaRequest.
  void SetOrder(std::vector<int32_t> rows, uint64_t seed);
  // Returns the media of rows begin..begin+count-1 of the order, then starts to load as many
  // rows that follow. The batch is valid until the next call of GetBatch() or SetOrder().
  absl::StatusOr<const MediaBatch*> GetBatch(int64_t begin, int64_t count);

  int threads() const { return static_cast<int>(threads_.size()); }
  // From the next batch on there are so many, at least as many as before.
  void AddThreadsUpTo(int count);

 private:
  struct Part {
    int64_t begin = 0, count = 0;
    bool operator==(const Part& other) const {
      return begin == other.begin && count == other.count;
    }
  };
  absl::Status Load(const Part& part, MediaBatch& out) const;
  absl::Status Staged(absl::Status loaded, MediaBatch& batch) const;
  void Run();
  // Loads that slice of the part into a batch of its own. All slices loaded: joins them.
  void LoadSlice(int slice);
  // Whether a thread has something to do.
  bool Wanted() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stop_ || next_slice_ < slices_;
  }
  void StartLoading();
  // Waits until nothing is being loaded.
  void Settle();

  const std::shared_ptr<const MediaSource> source_;
  const bool training_;
  const Stage stage_;
  std::vector<int32_t> rows_;  // changed only while nothing is being loaded
  uint64_t seed_ = 0;
  MediaBatch current_;
  MediaBatch next_;  // belongs to the threads while loading_

  absl::Mutex mutex_;
  bool loading_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  int slices_ ABSL_GUARDED_BY(mutex_) = 0;      // of part_
  int next_slice_ ABSL_GUARDED_BY(mutex_) = 0;  // that no thread has taken
  int slices_left_ ABSL_GUARDED_BY(mutex_) = 0;
  Part part_;            // the part in next_; count 0: none
  absl::Status loaded_;  // the result of loading next_
  // One of each slice, which its thread has to itself.
  struct Slice {
    Part part;
    MediaBatch batch;
    absl::Status loaded;
  };
  std::vector<Slice> parts_;  // changed only while nothing is being loaded
  std::vector<std::thread> threads_;
};

}  // namespace traind
