// The Jobs whose folds wait for slots. Each shape of gang has a queue of the Jobs with deadlines,
// and one for each owner of Jobs without: the order of owners changes with their shares of the
// machines, the order within a queue does not.
#include <algorithm>
#include <set>

#include "server/control/control_core_impl.h"

namespace traind {
namespace {

// So many Jobs more than there are free slots are looked at: slots that are kept for a gang are not
// for each of them.
constexpr size_t kLookFurther = 32;

}  // namespace

ControlCore::Impl::TrainQueues::iterator ControlCore::Impl::QueueOf(const JobEntry& entry) {
  const bool by_owner = !entry.train_key->has_deadline();
  return train_queue_.try_emplace({entry.shape, by_owner ? entry.view().owner : ""}).first;
}

void ControlCore::Impl::JoinTrainQueue(JobEntry& entry, const Urgency& urgency) {
  entry.train_key = urgency;
  QueueOf(entry)->second.insert({urgency, &entry});
}

void ControlCore::Impl::LeaveTrainQueue(JobEntry& entry) {
  if (!entry.train_key) return;
  const auto queue = QueueOf(entry);
  queue->second.erase(*entry.train_key);
  entry.place = 0;
  if (queue->second.empty()) train_queue_.erase(queue);
  entry.train_key.reset();
}

// Of a Job that waits for its first fold nobody knows how long that takes: half of its window. So
// among Jobs with about the same deadline it comes before further folds of others.
absl::Duration ControlCore::Impl::LeastLeft(const JobEntry& entry) const {
  const absl::Duration longest = LongestFold(entry);
  const Window window = WindowOf(entry);
  if (longest > absl::ZeroDuration() || !window.bounded()) return longest;
  return 0.5 * window.length();
}

// Until its longest waiting fold is done, as far as that was measured.
absl::Duration ControlCore::Impl::LongestFold(const JobEntry& entry) const {
  const FoldCost& cost = TypicalFold(entry);
  if (!cost.known()) return absl::ZeroDuration();
  double epochs = 0;
  for (const Task& task : entry.view().tasks) {
    if (task.state != TaskState::kPending || task.kind != TaskKind::kTrain || IsExtra(task)) {
      continue;
    }
    epochs = std::max(epochs, task.epochs_planned - task.epochs_done);
  }
  const FoldCost share = CostOfShare(cost, RowsOf(entry.view()));
  return absl::Seconds(share.overhead_s + epochs * share.epoch_s + StopSeconds(share));
}

// The Jobs that would get slots next, the first one first; all of one shape.
std::vector<JobEntry*> ControlCore::Impl::NextInLine(TrainQueues::const_iterator first,
                                                     size_t most) const {
  struct Cursor {
    Urgency urgency;
    JobLine::const_iterator at, end;
    bool operator<(const Cursor& other) const { return urgency < other.urgency; }
  };
  std::set<Cursor> cursors;
  const GangShape& shape = first->first.first;
  const auto push = [&](Cursor cursor, double share) {
    if (cursor.at == cursor.end) return;
    cursor.urgency = cursor.at->first;
    cursor.urgency.share = share;
    cursors.insert(std::move(cursor));
  };
  for (auto queue = first; queue != train_queue_.end(); ++queue) {
    if (shape < queue->first.first) break;
    push({{}, queue->second.begin(), queue->second.end()}, shares_.Of(queue->first.second, now_));
  }
  std::vector<JobEntry*> next;
  while (!cursors.empty() && next.size() < most + kLookFurther) {
    Cursor cursor = *cursors.begin();
    cursors.erase(cursors.begin());
    next.push_back(cursor.at->second);
    const double share = cursor.urgency.share + OwnerShares::Held(shape.slots);
    ++cursor.at;
    push(std::move(cursor), share);
  }
  return next;
}

ControlCore::Impl::TrainQueues::const_iterator ControlCore::Impl::SkipShape(
    TrainQueues::const_iterator queue) const {
  const GangShape shape = queue->first.first;
  while (queue != train_queue_.end() && !(shape < queue->first.first)) ++queue;
  return queue;
}

// Its place among those that wait for such a gang, from 1. Owners take turns, so of another owner's
// Jobs as many are before it as of its own.
int ControlCore::Impl::PlaceOf(const JobEntry& entry) const {
  const Urgency& key = *entry.train_key;
  const std::string owner = key.has_deadline() ? "" : entry.view().owner;
  const auto before = [&key](const JobLine& queue) {
    return static_cast<int>(queue.order_of_key(key));
  };
  const int own = before(train_queue_.at({entry.shape, owner}));
  int place = 1 + own;
  for (auto queue = train_queue_.lower_bound({entry.shape, ""}); queue != train_queue_.end();
       ++queue) {
    if (entry.shape < queue->first.first) break;
    if (queue->first.second == owner) continue;
    const bool by_owner = !queue->first.second.empty() && !owner.empty();
    place +=
        by_owner ? std::min(own, static_cast<int>(queue->second.size())) : before(queue->second);
  }
  return place;
}

// When a running fold's slots will be free; InfiniteFuture: that is not known.
absl::Time ControlCore::Impl::ExpectedEnd(const LiveAttempt& live) const {
  const bool goes = live.stop_sent && !live.preempted_for.empty();
  if (!live.open || live.job == nullptr || goes) return now_ + absl::Seconds(1);
  const JobEntry& entry = *live.job;
  const Task& task = entry.view().tasks[static_cast<size_t>(live.task)];
  absl::Time end = live.kind == TaskKind::kTrain ? live.stop_at : entry.view().deadline;
  FoldCost cost = CostOfFold(entry, live.task);
  if (!cost.known()) cost = TypicalFold(entry);
  if (cost.known() && live.kind == TaskKind::kTrain) {
    cost = CostOfShare(cost, RowsOf(entry.view()));
    const double done = std::max(task.epochs_done, task.live ? task.live->epoch : 0.0);
    const double left_s = std::max(0.0, live.epochs - done) * cost.epoch_s + StopSeconds(cost);
    end = std::min(end, now_ + absl::Seconds(left_s));
  }
  return std::max(end, now_ + absl::Seconds(1));
}

}  // namespace traind
