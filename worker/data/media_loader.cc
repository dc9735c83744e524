#include "worker/data/media_loader.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"

namespace traind {

MediaLoader::MediaLoader(std::shared_ptr<const MediaSource> source)
    : source_(std::move(source)), thread_([this] { Run(); }) {}

MediaLoader::~MediaLoader() {
  {
    const absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  thread_.join();
}

absl::Status MediaLoader::Load(const Part& part, MediaBatch& out) const {
  MediaRequest request;
  request.rows = absl::MakeConstSpan(rows_).subspan(static_cast<size_t>(part.begin),
                                                    static_cast<size_t>(part.count));
  request.training = true;
  request.seed = seed_;
  return source_->Load(request, out);
}

void MediaLoader::Run() {
  mutex_.Lock();
  while (true) {
    mutex_.Await(absl::Condition(
        +[](MediaLoader* self)
             ABSL_EXCLUSIVE_LOCKS_REQUIRED(self->mutex_) { return self->loading_ || self->stop_; },
        this));
    if (stop_) break;
    mutex_.Unlock();
    absl::Status status = Load(part_, next_);
    mutex_.Lock();
    loaded_ = std::move(status);
    loading_ = false;
  }
  mutex_.Unlock();
}

void MediaLoader::Settle() {
  const absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(
      +[](MediaLoader* self)
           ABSL_EXCLUSIVE_LOCKS_REQUIRED(self->mutex_) { return !self->loading_; },
      this));
}

void MediaLoader::SetOrder(std::vector<int32_t> rows, uint64_t seed) {
  Settle();
  rows_ = std::move(rows);
  seed_ = seed;
  part_ = Part{};
}

absl::StatusOr<const MediaBatch*> MediaLoader::GetBatch(int64_t begin, int64_t count) {
  Settle();
  const Part wanted{begin, count};
  if (count > 0 && part_ == wanted) {
    part_ = Part{};
    RETURN_IF_ERROR(loaded_);
    std::swap(current_, next_);
  } else {
    RETURN_IF_ERROR(Load(wanted, current_));
  }
  const int64_t after = begin + count;
  part_ = {after, std::min(count, static_cast<int64_t>(rows_.size()) - after)};
  if (part_.count > 0) {
    const absl::MutexLock lock(&mutex_);
    loading_ = true;
  }
  return &current_;
}

}  // namespace traind
