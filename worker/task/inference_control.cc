#include "worker/task/inference_control.h"

#include <utility>

namespace traind {

InferenceControl::InferenceControl(int64_t attempt, int64_t remaining_ms, const Clock& clock)
    : attempt_(attempt), clock_(clock) {
  if (remaining_ms >= 0) deadline_ = clock.MonotonicNow() + absl::Milliseconds(remaining_ms);
}

absl::Duration InferenceControl::deadline() const {
  absl::MutexLock lock(&mutex_);
  return deadline_;
}

InferenceControl::Order InferenceControl::order() const {
  absl::MutexLock lock(&mutex_);
  return order_;
}

void InferenceControl::Apply(const rank_protocol::Replan& replan) {
  if (replan.remaining_ms < 0) return;
  absl::MutexLock lock(&mutex_);
  deadline_ = clock_.MonotonicNow() + absl::Milliseconds(replan.remaining_ms);
}

void InferenceControl::Apply(const rank_protocol::Stop& stop) {
  absl::MutexLock lock(&mutex_);
  order_ = stop.predict ? Order::kAnswer : Order::kDrop;
  news_.NotifyAll();
}

void InferenceControl::Push(rank_protocol::Rows rows) {
  absl::MutexLock lock(&mutex_);
  rows_.push_back(std::move(rows));
  news_.NotifyAll();
}

std::vector<rank_protocol::Rows> InferenceControl::WaitForRows(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto something = [this] {
    mutex_.AssertReaderHeld();
    return !rows_.empty() || order_ != Order::kContinue;
  };
  news_.Await(mutex_, timeout, something);
  return std::exchange(rows_, {});
}

}  // namespace traind
