// Starting tasks: PREPAREs on any Worker at once, folds where slots are free.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/job_rules/task_rules.h"
#include "common/plain/plain_json.h"
#include "server/control/control_core_impl.h"
#include "server/domain/names.h"

namespace traind {
namespace {

bool HasTrained(const Job& job) {
  return std::any_of(job.attempts.begin(), job.attempts.end(),
                     [](const Attempt& attempt) { return attempt.kind == TaskKind::kTrain; });
}

// The fewest slots on which a fold of the Job has run; nullopt: none has.
std::optional<int> LeastGang(const Job& job) {
  std::optional<int> least;
  for (const Attempt& attempt : job.attempts) {
    if (attempt.kind != TaskKind::kTrain) continue;
    least = std::min(least.value_or(SlotCount(attempt)), SlotCount(attempt));
  }
  return least;
}

}  // namespace

void ControlCore::Impl::Dispatch() {
  if (shutting_down_) return;
  DispatchPrepares();
  NotePrepareWaits();
  EndPreempted();
  DispatchFolds();
  Preempt();
}

void ControlCore::Impl::DispatchPrepares() {
  size_t started = 0;
  for (auto head = prepare_queue_.begin(); head != prepare_queue_.end();) {
    JobEntry& entry = *head->second;
    const WorkerState* const idlest = IdlestFor(entry);
    if (idlest == nullptr) return;
    const bool urgent = entry.view().deadline - now_ <= absl::Minutes(1);
    if (idlest->prepares >= options_.max_prepares && !urgent) return;
    if (++started > kMostStarts) {
      more_to_start_ = true;
      return;
    }
    SendStart(entry, StartAttempt(entry, 0, {{idlest->id, {}}}), {});
    head = prepare_queue_.erase(head);
    entry.prepare_key.reset();
  }
}

const WorkerState* ControlCore::Impl::IdlestOf(const IdleWorkers& idle,
                                               const Constraints& asked) const {
  const auto first = std::find_if(idle.begin(), idle.end(), [&](const auto& place) {
    return HasLabels(workers_.at(place.second).labels, asked);
  });
  return first == idle.end() ? nullptr : &workers_.at(first->second);
}

// The folds run where the labels are, so the data are best read there. Where nobody has them the
// floor answers.
const WorkerState* ControlCore::Impl::IdlestFor(const JobEntry& entry) const {
  const Constraints& asked = entry.shape.constraints;
  const IdleWorkers* rarest = nullptr;
  for (const std::string& label : asked.labels) {
    const auto it = idle_.find(label);
    if (it == idle_.end()) return IdlestOf(idle_.at(""), {});
    if (rarest == nullptr || it->second.size() < rarest->size()) rarest = &it->second;
  }
  const WorkerState* idlest = rarest == nullptr ? nullptr : IdlestOf(*rarest, asked);
  return idlest != nullptr ? idlest : IdlestOf(idle_.at(""), {});
}

void ControlCore::Impl::NoteEnds() {
  if (attempts_.size() > kFewAttempts && now_ < ends_noted_at_ + kWalkInterval) return;
  ends_noted_at_ = now_;
  for (auto& [id, live] : attempts_) {
    live.expected_end = ExpectedEnd(live);
    for (const AttemptPart& part : live.parts) {
      if (!part.over) board_.ExpectFree(part.worker, part.slots, live.expected_end);
    }
  }
}

Candidate ControlCore::Impl::MakeCandidate(const JobEntry& entry, size_t most, bool timed) const {
  Candidate candidate;
  candidate.urgency = *entry.train_key;
  candidate.owner = entry.view().owner;
  candidate.urgency.share = shares_.Of(candidate.owner, now_);
  candidate.slots_left = limits_.SlotsLeft(candidate.owner);
  if (timed) {
    candidate.takes = StopOf(entry, nullptr) - now_;
    const absl::Duration measured = LongestFold(entry);
    if (measured > absl::ZeroDuration()) candidate.takes = std::min(candidate.takes, measured);
  }
  candidate.shape = ShapeNow(entry);
  candidate.may_span = MaySpan(entry);
  candidate.home = entry.home;
  const Job& job = entry.view();
  const bool folds_wait = FirstTrialNeedsMore(entry);
  for (size_t i = 1; i < job.tasks.size() && candidate.folds.size() < most; ++i) {
    const Task& task = job.tasks[i];
    if (IsExtra(task) && folds_wait) break;
    if (task.state != TaskState::kPending || task.not_before > now_) continue;
    const bool back = ComesBack(job, task);
    if (back && (!candidate.urgency.extra_seeds_only || !PaysToStart(entry, task))) continue;
    candidate.folds.push_back(static_cast<int>(i));
    if (!back) continue;
    if (timed) candidate.takes = StopOf(entry, nullptr, &task) - now_;
    break;  // the next one depends on the Plan for this one
  }
  return candidate;
}

// A fold that pauses before a retry counts, too: extra models wait until it has run.
bool ControlCore::Impl::FoldsWait(const Job& job) const {
  return std::any_of(job.tasks.begin() + 1, job.tasks.end(), [&job](const Task& task) {
    return !IsExtra(task) && task.state == TaskState::kPending && !ComesBack(job, task);
  });
}

void ControlCore::Impl::DispatchFolds() {
  if (train_queue_.empty()) return line_.clear();
  // Ends of folds matter where slots may be kept for a gang, and for what is told.
  const bool notes = NotesDue(), timed = notes || GangsWait();
  if (timed) NoteEnds();
  if (board_.free_slots() == 0) {
    if (notes) NoteWaits();
    return;
  }
  const size_t most = std::min(kMostStarts, static_cast<size_t>(board_.free_slots()));
  std::vector<Candidate> candidates;
  std::vector<JobEntry*> entries;
  for (auto first = train_queue_.cbegin(); first != train_queue_.cend(); first = SkipShape(first)) {
    for (JobEntry* entry : NextInLine(first, most)) {
      candidates.push_back(MakeCandidate(*entry, most, timed));
      entries.push_back(entry);
    }
  }
  const std::vector<Placement> placements = PlaceFolds(candidates, now_, board_, most);
  more_to_start_ |= placements.size() == kMostStarts;
  // A fold that comes back was left out while those that start now still waited.
  const bool left_out = std::any_of(candidates.begin(), candidates.end(),
                                    [](const Candidate& c) { return c.folds.empty(); });
  more_to_start_ |= left_out && !placements.empty();
  for (const Placement& placement : placements) {
    StartFold(*entries[placement.candidate], placement.fold, placement);
  }
  for (JobEntry* entry : entries) {
    if (entry->touched) UpdateQueues(*entry);
  }
  if (notes) NoteWaits();
}

int ControlCore::Impl::Gangs(const JobEntry& entry) const {
  return std::min(GangsOfMachines(entry), limits_.Gangs(entry.shape.slots));
}

int ControlCore::Impl::GangsOfMachines(const JobEntry& entry) const {
  return board_.capacity().CountGangs(ShapeNow(entry), MaySpan(entry));
}

// The Ranks of networks exchange gradients over any network; trees and programs have no such gang.
bool ControlCore::Impl::MaySpan(const JobEntry& entry) {
  const Spec& spec = entry.view().spec;
  if (spec.slots <= 1 || ProgramTrains(spec)) return false;
  return std::none_of(spec.trials.begin(), spec.trials.end(),
                      [](const Trial& trial) { return IsTrees(trial.kind); });
}

// A gang as it was asked for; but where no Workers can hold it, also not with those that are gone
// for less than a lease, the largest that there is: at once if the Job has trained (and Workers had
// a lease to come after a start of traind), else when the time for its first fold is over (B3).
// Without a deadline it waits for as many as were asked for, unless traind is standalone.
GangShape ControlCore::Impl::ShapeNow(const JobEntry& entry) const {
  GangShape shape = entry.shape;
  if (shape.slots <= 1) return shape;
  const bool may_shrink = HasTrained(entry.view()) ? shrink_from_ == absl::InfinitePast()
                                                   : now_ >= WholeGangUntil(entry);
  if (!may_shrink) return shape;
  const bool may_span = MaySpan(entry);
  if (expected_.CountGangs(shape, may_span) > 0) return shape;
  const int most = board_.capacity().LargestGang(shape, may_span);
  if (most > 0) shape.slots = std::min(shape.slots, most);
  return shape;
}

// To a standalone traind no further Workers come.
absl::Time ControlCore::Impl::WholeGangUntil(const JobEntry& entry) const {
  if (options_.standalone) return absl::InfinitePast();
  return WindowOf(entry).At(entry.view().spec.shares.first_fold);
}

// REQUIRES: the Attempt of the gang is not in the Job's list yet.
void ControlCore::Impl::NoteSmallerGang(JobEntry& entry, const Placement& placement) {
  size_t slots = 0;
  for (const GangPart& part : placement.parts) slots += part.slots.size();
  if (static_cast<int>(slots) >= entry.shape.slots) return;
  const std::optional<int> least = LeastGang(entry.view());
  const int before = std::min(least.value_or(entry.shape.slots), entry.shape.slots);
  if (static_cast<int>(slots) >= before) return;
  const Window window = WindowOf(entry);
  std::string cause = "no Workers have as many slots";
  if (window.bounded()) {
    absl::StrAppend(&cause, ", ", Text(now_ - window.start), " of ", Text(window.length()),
                    " used");
  }
  Decide(entry, least ? DecisionRule::kB8 : DecisionRule::kB3, std::move(cause),
         absl::StrCat("folds on ", before, " slots"),
         absl::StrCat("on ", slots, slots == 1 ? " slot" : " slots"));
}

// All parts wait until the last one is ready, so that none waits for the others in a library.
void ControlCore::Impl::Handle(GangReady& event) {
  const auto it = attempts_.find(event.attempt);
  AttemptPart* const part = it == attempts_.end() ? nullptr : it->second.PartOn(event.worker);
  if (part == nullptr || !it->second.open) {
    return AbortStale(event.worker, event.attempt, "this Attempt is over");
  }
  LiveAttempt& live = it->second;
  part->ready = true;
  part->port = event.port;
  const bool all = std::all_of(live.parts.begin(), live.parts.end(),
                               [](const AttemptPart& p) { return p.ready; });
  if (!all) return;
  const bool first = !std::exchange(live.met, true);
  for (const AttemptPart& other : live.parts) {
    if (!first && other.worker != event.worker) continue;
    turn_.meets.push_back(
        {other.worker, live.id, workers_.at(live.lead()).address, live.parts[0].port});
  }
}

LiveAttempt& ControlCore::Impl::StartAttempt(JobEntry& entry, int task_index,
                                             std::vector<GangPart> parts) {
  Job& job = EditDurably(entry);
  Task& task = job.tasks[static_cast<size_t>(task_index)];
  LiveAttempt live;
  live.id = ++last_attempt_;
  turn_.mutations.last_attempt = last_attempt_;
  live.job = &entry;
  live.task = task_index;
  live.kind = task.kind;
  for (GangPart& part : parts) {
    const int first_rank = live.SlotCount();
    live.parts.push_back({std::move(part.worker), std::move(part.slots), first_rank});
  }
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
  row.worker = live.lead();
  row.slots = live.parts[0].slots;
  for (size_t i = 1; i < live.parts.size(); ++i) {
    row.others.push_back({live.parts[i].worker, live.parts[i].slots});
  }
  row.started_at = now_;
  Log(entry, "attempt_started",
      absl::StrCat(live.id, " ", TaskName(task), " on ", WorkersText(row)));
  job.attempts.push_back(std::move(row));
  return AddLive(std::move(live));
}

// The same for all parts of an Attempt, besides their ranks.
void ControlCore::Impl::SendStart(JobEntry& entry, const LiveAttempt& live, StartCommand command) {
  const Job& job = entry.view();
  const Task& task = job.tasks[static_cast<size_t>(live.task)];
  command.attempt = live.id;
  command.kind = task.kind;
  command.fold = task.fold;
  command.trial = task.trial;
  command.seed = task.seed;
  command.deadline = job.deadline;
  command.world_size = std::max(1, live.SlotCount());
  for (const AttemptPart& part : live.parts) {
    command.worker = part.worker;
    command.slots = part.slots;
    command.first_rank = part.first_rank;
    turn_.starts.push_back(command);
    start_owners_.push_back(&entry);
  }
}

void ControlCore::Impl::StartFold(JobEntry& entry, int index, const Placement& placement) {
  const Task& waits = entry.view().tasks[static_cast<size_t>(index)];
  std::optional<double> back_after;
  if (ComesBack(entry.view(), waits)) back_after = waits.epochs_done;
  // Before the Attempt is there, so that the clock is asked for a fold to come.
  const absl::Time stop_at = StopOf(entry, nullptr, back_after ? &waits : nullptr);
  if (back_after) PlanComeback(entry, waits, stop_at);
  more_to_start_ |= back_after.has_value();
  NoteSmallerGang(entry, placement);
  LiveAttempt& live = StartAttempt(entry, index, placement.parts);
  live.back_after = back_after;
  Task& task = Edit(entry).tasks[static_cast<size_t>(index)];
  const Plan& plan = entry.view().plans.back();
  StartCommand command;
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
  SendStart(entry, live, std::move(command));
  // The others' share of the time may have changed with it.
  entry.pace.replan_wanted = true;
}

}  // namespace traind
