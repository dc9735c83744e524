#include "worker/data/media_loader.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"

namespace traind {
namespace {

void Append(const MediaBatch& part, MediaBatch& to) {
  const auto append = [](const auto& from, auto& into) {
    into.insert(into.end(), from.begin(), from.end());
  };
  if (to.shape.empty()) {
    to.shape = part.shape;
    to.target_shape = part.target_shape;
  } else {
    to.shape[0] += part.shape[0];
    if (!to.target_shape.empty()) to.target_shape[0] += part.target_shape[0];
  }
  append(part.values, to.values);
  append(part.target, to.target);
  const auto tokens = static_cast<int32_t>(to.tokens.size());
  append(part.tokens, to.tokens);
  for (const int32_t end : part.ends) to.ends.push_back(tokens + end);
}

}  // namespace

MediaLoader::MediaLoader(std::shared_ptr<const MediaSource> source, int threads, bool training,
                         Stage stage)
    : source_(std::move(source)), training_(training), stage_(std::move(stage)) {
  AddThreadsUpTo(threads);
}

MediaLoader::~MediaLoader() {
  {
    const absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void MediaLoader::AddThreadsUpTo(int count) {
  Settle();
  if (count <= threads()) return;
  parts_.resize(static_cast<size_t>(count));
  while (threads() < count) threads_.emplace_back([this] { Run(); });
}

absl::Status MediaLoader::Load(const Part& part, MediaBatch& out) const {
  MediaRequest request;
  request.rows = absl::MakeConstSpan(rows_).subspan(static_cast<size_t>(part.begin),
                                                    static_cast<size_t>(part.count));
  request.training = training_;
  request.seed = seed_;
  return source_->Load(request, out);
}

absl::Status MediaLoader::Staged(absl::Status loaded, MediaBatch& batch) const {
  batch.staged.reset();
  return loaded.ok() && stage_ != nullptr ? stage_(batch) : loaded;
}

void MediaLoader::Run() {
  while (true) {
    int slice = 0;
    {
      const absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(
          +[](MediaLoader* self)
               ABSL_EXCLUSIVE_LOCKS_REQUIRED(self->mutex_) { return self->Wanted(); },
          this));
      if (stop_) return;
      slice = next_slice_++;
    }
    LoadSlice(slice);
  }
}

void MediaLoader::LoadSlice(int slice) {
  Slice& mine = parts_[static_cast<size_t>(slice)];
  const bool whole = mine.part == part_;
  mine.loaded = Load(mine.part, whole ? next_ : mine.batch);
  int slices = 0;
  {
    const absl::MutexLock lock(&mutex_);
    if (--slices_left_ > 0) return;
    slices = slices_;
  }
  // The others are done with theirs.
  absl::Status loaded = mine.loaded;
  if (!whole) {
    next_.shape.clear();
    next_.target_shape.clear();
    next_.values.clear();
    next_.target.clear();
    next_.tokens.clear();
    next_.ends.clear();
    loaded = absl::OkStatus();
    for (int i = 0; i < slices && loaded.ok(); ++i) {
      loaded = parts_[static_cast<size_t>(i)].loaded;
      if (loaded.ok()) Append(parts_[static_cast<size_t>(i)].batch, next_);
    }
  }
  loaded = Staged(std::move(loaded), next_);
  const absl::MutexLock lock(&mutex_);
  loaded_ = std::move(loaded);
  loading_ = false;
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

// REQUIRES: nothing is being loaded.
void MediaLoader::StartLoading() {
  const int64_t slices = std::min<int64_t>(threads(), part_.count);
  for (int64_t i = 0; i < slices; ++i) {
    const int64_t begin = part_.count * i / slices, end = part_.count * (i + 1) / slices;
    parts_[static_cast<size_t>(i)].part = {part_.begin + begin, end - begin};
  }
  const absl::MutexLock lock(&mutex_);
  slices_ = slices_left_ = static_cast<int>(slices);
  next_slice_ = 0;
  loading_ = true;
}

absl::StatusOr<const MediaBatch*> MediaLoader::GetBatch(int64_t begin, int64_t count) {
  Settle();
  const Part wanted{begin, count};
  if (count > 0 && part_ == wanted) {
    part_ = Part{};
    RETURN_IF_ERROR(loaded_);
    std::swap(current_, next_);
  } else {
    RETURN_IF_ERROR(Staged(Load(wanted, current_), current_));
  }
  if (threads() == 0) return &current_;
  const int64_t after = begin + count;
  part_ = {after, std::min(count, static_cast<int64_t>(rows_.size()) - after)};
  if (part_.count > 0) StartLoading();
  return &current_;
}

}  // namespace traind
