#include "worker/train/task_control.h"

namespace traind {
namespace {

absl::Duration After(const Clock& clock, int64_t ms) {
  return ms < 0 ? absl::InfiniteDuration() : clock.MonotonicNow() + absl::Milliseconds(ms);
}

}  // namespace

TaskControl::TaskControl(const rank_protocol::Train& train, const Clock& clock)
    : attempt_(train.attempt), clock_(clock) {
  orders_.epochs = train.epochs;
  orders_.row_share = train.row_share;
  orders_.stop_at = After(clock, train.stop_ms);
  orders_.deadline = After(clock, train.remaining_ms);
}

TaskControl::Orders TaskControl::orders() const {
  absl::MutexLock lock(&mutex_);
  return orders_;
}

void TaskControl::Apply(const rank_protocol::Replan& replan) {
  absl::MutexLock lock(&mutex_);
  if (replan.epochs > 0) orders_.epochs = replan.epochs;
  if (replan.row_share > 0) orders_.row_share = replan.row_share;
  if (replan.stop_ms >= 0) orders_.stop_at = After(clock_, replan.stop_ms);
  if (replan.remaining_ms >= 0) orders_.deadline = After(clock_, replan.remaining_ms);
  version_.fetch_add(1, std::memory_order_release);
}

void TaskControl::Apply(const rank_protocol::Stop& stop) {
  absl::MutexLock lock(&mutex_);
  // A second one may turn a soft stop into a hard one, not back.
  orders_.predict = stop.predict && (orders_.predict || !orders_.stop);
  orders_.stop = true;
  orders_.cause = CauseOf(stop.reason);
  version_.fetch_add(1, std::memory_order_release);
}

}  // namespace traind
