// Starting tasks: PREPAREs on any Worker at once, folds where slots are free.
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "server/control/control_core_impl.h"
#include "server/domain/names.h"

namespace traind {

void ControlCore::Impl::Dispatch() {
  if (shutting_down_) return;
  DispatchPrepares();
  DispatchFolds();
}

void ControlCore::Impl::DispatchPrepares() {
  if (prepare_queue_.empty()) return;
  std::map<std::string, int> outstanding;
  for (const auto& [id, worker] : workers_) {
    if (worker.attached) outstanding[id] = 0;
  }
  if (outstanding.empty()) return;
  for (const auto& [id, live] : attempts_) {
    const auto it = outstanding.find(live.worker);
    if (live.kind == TaskKind::kPrepare && it != outstanding.end()) ++it->second;
  }
  while (!prepare_queue_.empty()) {
    const auto head = prepare_queue_.begin();
    JobEntry& entry = *head->second;
    auto idlest = outstanding.begin();
    for (auto it = outstanding.begin(); it != outstanding.end(); ++it) {
      if (it->second < idlest->second) idlest = it;
    }
    const bool urgent = entry.view().deadline - now_ <= absl::Minutes(1);
    if (idlest->second >= options_.max_prepares && !urgent) return;
    StartAttempt(entry, 0, idlest->first, {});
    ++idlest->second;
    prepare_queue_.erase(head);
    entry.prepare_key.reset();
  }
}

std::vector<WorkerSlots> ControlCore::Impl::FreeSlots() const {
  std::vector<WorkerSlots> all;
  for (const auto& [id, worker] : workers_) {
    if (!worker.attached) continue;
    WorkerSlots slots;
    slots.worker = id;
    for (const Slot& slot : worker.slots) {
      slots.slots.push_back({slot.index, slot.device, worker.foreign.empty()});
    }
    all.push_back(std::move(slots));
  }
  for (const auto& [id, live] : attempts_) {
    if (live.slots.empty()) continue;
    for (WorkerSlots& worker : all) {
      if (worker.worker != live.worker) continue;
      for (WorkerSlots::Slot& slot : worker.slots) {
        if (std::find(live.slots.begin(), live.slots.end(), slot.index) != live.slots.end()) {
          slot.free = false;
        }
      }
    }
  }
  return all;
}

Candidate ControlCore::Impl::MakeCandidate(const JobEntry& entry, size_t most) const {
  Candidate candidate;
  candidate.urgency = *entry.train_key;
  candidate.shape = entry.shape;
  candidate.home = entry.home;
  const Job& job = entry.view();
  const bool folds_wait = FirstTrialNeedsMore(job);
  for (size_t i = 1; i < job.tasks.size() && candidate.folds.size() < most; ++i) {
    const Task& task = job.tasks[i];
    if (IsExtra(task) && folds_wait) break;
    if (task.state == TaskState::kPending && task.not_before <= now_) {
      candidate.folds.push_back(static_cast<int>(i));
    }
  }
  return candidate;
}

// A fold that pauses before a retry counts, too: extra models wait until it has run.
bool ControlCore::Impl::FoldsWait(const Job& job) const {
  return std::any_of(job.tasks.begin() + 1, job.tasks.end(), [](const Task& task) {
    return !IsExtra(task) && task.state == TaskState::kPending;
  });
}

void ControlCore::Impl::DispatchFolds() {
  const bool waits = std::any_of(train_queue_.begin(), train_queue_.end(),
                                 [](const auto& queue) { return !queue.second.empty(); });
  if (!waits) return;
  std::vector<WorkerSlots> workers = FreeSlots();
  size_t free = 0;
  for (const WorkerSlots& worker : workers) {
    for (const WorkerSlots::Slot& slot : worker.slots) free += slot.free;
  }
  if (free == 0) return;
  // At most as many Jobs of each shape as there are slots are looked at: more cannot start.
  std::vector<Candidate> candidates;
  std::vector<JobEntry*> entries;
  for (const auto& [shape, queue] : train_queue_) {
    size_t taken = 0;
    for (const auto& [urgency, entry] : queue) {
      if (taken++ == free) break;
      candidates.push_back(MakeCandidate(*entry, free));
      entries.push_back(entry);
    }
  }
  for (const Placement& placement : PlaceFolds(candidates, workers)) {
    StartFold(*entries[placement.candidate], placement.fold, placement);
  }
  for (JobEntry* entry : entries) {
    if (entry->touched) UpdateQueues(*entry);
  }
}

int ControlCore::Impl::Gangs(const JobEntry& entry) const {
  int gangs = 0;
  for (const auto& [id, worker] : workers_) {
    if (!worker.attached) continue;
    WorkerSlots slots;
    for (const Slot& slot : worker.slots) slots.slots.push_back({slot.index, slot.device, true});
    gangs += CountGangs(entry.shape, {&slots, 1});
  }
  return gangs;
}

LiveAttempt& ControlCore::Impl::StartAttempt(JobEntry& entry, int task_index,
                                             const std::string& worker, std::vector<int> slots) {
  Job& job = EditDurably(entry);
  Task& task = job.tasks[static_cast<size_t>(task_index)];
  LiveAttempt live;
  live.id = ++last_attempt_;
  turn_.mutations.last_attempt = last_attempt_;
  live.job = &entry;
  live.task = task_index;
  live.kind = task.kind;
  live.worker = worker;
  live.slots = std::move(slots);
  live.started_at = now_;
  task.state = TaskState::kRunning;
  task.attempt = live.id;
  ++task.attempts;
  task.live.reset();
  task.message.clear();
  if (job.started_at == absl::InfiniteFuture()) job.started_at = now_;
  Attempt row;
  row.id = live.id;
  row.kind = task.kind;
  row.fold = task.fold;
  row.trial = task.trial;
  row.seed = task.seed;
  row.worker = worker;
  row.slots = live.slots;
  row.started_at = now_;
  job.attempts.push_back(std::move(row));
  Log(entry, "attempt_started", absl::StrCat(live.id, " ", TaskName(task), " on ", worker));

  StartCommand command;
  command.worker = worker;
  command.attempt = live.id;
  command.kind = task.kind;
  command.fold = task.fold;
  command.trial = task.trial;
  command.seed = task.seed;
  command.slots = live.slots;
  command.deadline = job.deadline;
  turn_.starts.push_back(std::move(command));
  start_owners_.push_back(&entry);
  return AddLive(std::move(live));
}

void ControlCore::Impl::StartFold(JobEntry& entry, int index, const Placement& placement) {
  // Before the Attempt is there, so that the clock is asked for a fold to come.
  const absl::Time stop_at = StopOf(entry, nullptr);
  LiveAttempt& live = StartAttempt(entry, index, placement.worker, placement.slots);
  Task& task = Edit(entry).tasks[static_cast<size_t>(index)];
  const Plan& plan = entry.view().plans.back();
  StartCommand& command = turn_.starts.back();
  // A fold that failed twice from a checkpoint starts afresh.
  if (task.checkpoint && task.failures < 2) command.resume = task.checkpoint->manifest;
  command.batch = task.retry_batch;
  task.epochs_done = command.resume.empty() ? 0 : task.checkpoint->epoch;
  if (command.resume.empty()) task.row_share = 1;
  // A further trial has its own epochs, which no rule cuts.
  command.epochs = task.trial > 0 ? EpochsOf(entry.view().spec, task.trial) : plan.epochs;
  command.row_share = task.trial > 0 ? 1 : plan.row_share;
  task.epochs_planned = command.epochs;
  command.stop_at = stop_at;
  command.plan_cut = PlanCut(entry.view());
  live.epochs = command.epochs;
  live.row_share = command.row_share;
  live.stop_at = command.stop_at;
  live.plan_cut = command.plan_cut;
  live.replanned_at = now_;
  live.last_epoch = static_cast<int>(task.epochs_done);
  // The others' share of the time may have changed with it.
  entry.pace.replan_wanted = true;
}

}  // namespace traind
