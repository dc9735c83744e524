// The Jobs whose folds wait for slots. Each shape of gang has a queue of the Jobs with deadlines,
// and one for each owner of Jobs without: the order of owners changes with their shares of the
// machines, the order within a queue does not. Where owners have a limit of slots, Jobs with
// deadlines have a queue for each owner, too, so that those who may have no more are passed over.
#include <algorithm>
#include <set>

#include "server/control/control_core_impl.h"

namespace traind {
namespace {

// So many Jobs more than there are free slots are looked at: slots that are kept for a gang are not
// for each of them.
constexpr size_t kLookFurther = 32;

}  // namespace

ControlCore::Impl::QueueName ControlCore::Impl::QueueNameOf(const JobEntry& entry) const {
  const bool timeless = !entry.train_key->has_deadline();
  const bool by_owner = timeless || limits_.limits_slots();
  return {entry.shape, timeless, by_owner ? entry.view().owner : ""};
}

void ControlCore::Impl::JoinTrainQueue(JobEntry& entry, const Urgency& urgency) {
  entry.train_key = urgency;
  train_queue_[QueueNameOf(entry)].insert({urgency, &entry});
}

void ControlCore::Impl::LeaveTrainQueue(JobEntry& entry) {
  if (!entry.train_key) return;
  const auto queue = train_queue_.find(QueueNameOf(entry));
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

// Further ones are looked at as in NextInLine. Where too little is left for a gang, one of them
// keeps that (PlaceFolds).
ControlCore::Impl::WithinLimit ControlCore::Impl::WithinLimitOf(const QueueName& queue) const {
  if (!limits_.limits_slots()) return {};
  const int slots = queue.shape.slots, left = limits_.SlotsLeft(queue.owner);
  if (left <= 0 || limits_.Gangs(slots) == 0) return {0, 0};
  const auto may_start = static_cast<size_t>(left / slots);
  return {may_start, may_start == 0 ? 1 : may_start + kLookFurther};
}

bool ControlCore::Impl::IsHeldBack(const JobEntry& entry) const {
  return limits_.limits_slots() && entry.train_key &&
         WithinLimitOf(QueueNameOf(entry)).may_start == 0;
}

std::vector<JobEntry*> ControlCore::Impl::HeldBack(TrainQueues::const_iterator first,
                                                   size_t most) const {
  std::vector<JobEntry*> held;
  if (!limits_.limits_slots()) return held;
  const GangShape& shape = first->first.shape;
  for (auto queue = first; queue != train_queue_.end() && !(shape < queue->first.shape); ++queue) {
    const size_t seen = WithinLimitOf(queue->first).seen;
    if (seen >= queue->second.size()) continue;
    for (auto at = queue->second.find_by_order(seen); at != queue->second.end(); ++at) {
      if (held.size() == most) return held;
      held.push_back(at->second);
    }
  }
  return held;
}

// The Jobs that would get slots next, the first one first; all of one shape.
std::vector<JobEntry*> ControlCore::Impl::NextInLine(TrainQueues::const_iterator first,
                                                     size_t most) const {
  struct Cursor {
    Urgency urgency;
    JobLine::const_iterator at, end;
    WithinLimit left;  // of its queue
    bool operator<(const Cursor& other) const { return urgency < other.urgency; }
  };
  std::set<Cursor> cursors;
  const GangShape& shape = first->first.shape;
  const auto push = [&](Cursor cursor, double share) {
    if (cursor.at == cursor.end || cursor.left.seen == 0) return;
    cursor.urgency = cursor.at->first;
    cursor.urgency.share = share;
    cursors.insert(std::move(cursor));
  };
  for (auto queue = first; queue != train_queue_.end(); ++queue) {
    if (shape < queue->first.shape) break;
    push({{}, queue->second.begin(), queue->second.end(), WithinLimitOf(queue->first)},
         shares_.Of(queue->first.owner, now_));
  }
  std::vector<JobEntry*> next;
  size_t may_start = 0;
  while (!cursors.empty() && may_start < most + kLookFurther) {
    Cursor cursor = *cursors.begin();
    cursors.erase(cursors.begin());
    next.push_back(cursor.at->second);
    --cursor.left.seen;
    if (cursor.left.may_start > 0) {
      --cursor.left.may_start;
      ++may_start;
    }
    const double share = cursor.urgency.share + OwnerShares::Held(shape.slots);
    ++cursor.at;
    push(std::move(cursor), share);
  }
  return next;
}

ControlCore::Impl::TrainQueues::const_iterator ControlCore::Impl::SkipShape(
    TrainQueues::const_iterator queue) const {
  const GangShape shape = queue->first.shape;
  while (queue != train_queue_.end() && !(shape < queue->first.shape)) ++queue;
  return queue;
}

// Its place among those that wait for such a gang, from 1. Owners take turns, so of another owner's
// Jobs as many are before it as of its own.
int ControlCore::Impl::PlaceOf(const JobEntry& entry) const {
  const Urgency& key = *entry.train_key;
  const QueueName name = QueueNameOf(entry);
  const auto before = [&key](const JobLine& queue) {
    return static_cast<int>(queue.order_of_key(key));
  };
  const int own = before(train_queue_.at(name));
  int place = 1 + own;
  for (auto queue = train_queue_.lower_bound({entry.shape, false, ""}); queue != train_queue_.end();
       ++queue) {
    if (entry.shape < queue->first.shape) break;
    if (queue->first.timeless == name.timeless && queue->first.owner == name.owner) continue;
    const bool take_turns = queue->first.timeless && name.timeless;
    place +=
        take_turns ? std::min(own, static_cast<int>(queue->second.size())) : before(queue->second);
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
