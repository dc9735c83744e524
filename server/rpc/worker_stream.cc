#include "server/rpc/worker_stream.h"

#include <algorithm>
#include <utility>

namespace traind {

void WorkerStream::Begin() {
  {
    absl::MutexLock lock(&mutex_);
    self_ = shared_from_this();
  }
  ReadNext();
}

bool WorkerStream::Send(v1::CoordinatorMessage message, WhenFull full) {
  absl::MutexLock lock(&mutex_);
  if (!open_) return true;
  if (message.has_ack() && !queue_.empty() && queue_.back().has_ack()) {
    v1::Ack& last = *queue_.back().mutable_ack();
    last.set_sequence(std::max(last.sequence(), message.ack().sequence()));
    return true;
  }
  const size_t bytes = message.ByteSizeLong();
  if (!queue_.empty() &&
      (queue_.size() >= limits_.messages || queued_bytes_ + bytes > limits_.bytes)) {
    if (full == WhenFull::kEnd) {
      DropQueue();
      context_->TryCancel();
    }
    return false;
  }
  queue_.push_back(std::move(message));
  queued_bytes_ += bytes;
  if (!writing_) WriteNext();
  return true;
}

void WorkerStream::WriteNext() {
  if (queue_.empty()) return;
  outgoing_ = std::move(queue_.front());
  queue_.pop_front();
  queued_bytes_ -= outgoing_.ByteSizeLong();
  writing_ = true;
  StartWrite(&outgoing_);
}

void WorkerStream::DropQueue() {
  open_ = false;
  queue_.clear();
  queued_bytes_ = 0;
}

void WorkerStream::End(grpc::Status status) {
  absl::MutexLock lock(&mutex_);
  DropQueue();
  if (writing_) {
    end_ = std::move(status);
  } else {
    Finish(std::move(status));
  }
}

void WorkerStream::Cancel() {
  absl::MutexLock lock(&mutex_);
  if (context_ != nullptr) context_->TryCancel();
}

void WorkerStream::OnReadDone(bool ok) {
  if (ok) return Take(incoming_);
  Ended();
  End(grpc::Status::OK);
}

void WorkerStream::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  outgoing_.Clear();
  if (end_.has_value()) return Finish(*std::move(end_));
  if (ok && open_) return WriteNext();
  if (ok) return;
  // The stream is broken, and the read that is open has to learn of it.
  DropQueue();
  context_->TryCancel();
}

void WorkerStream::OnDone() {
  std::shared_ptr<WorkerStream> self;  // goes after the lock
  absl::MutexLock lock(&mutex_);
  context_ = nullptr;
  self = std::move(self_);
}

}  // namespace traind
