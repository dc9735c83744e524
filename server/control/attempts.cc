// How Attempts end and what becomes of their tasks: done, again, or over.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>

#include "server/control/control_core_impl.h"
#include "server/control/end_reason.h"
#include "server/domain/names.h"

namespace traind {
namespace {

// Where all is well every part ends by itself, with the others or soon after.
bool EndsWell(AttemptEndReason reason) {
  return reason == AttemptEndReason::kCompleted || reason == AttemptEndReason::kStoppedInTime ||
         reason == AttemptEndReason::kFinishedByUser;
}

// The cause of a Decision about tasks that are tried again, or not again.
std::string RetryCause(const std::vector<std::string>& tasks, const std::string& ended) {
  return absl::StrCat(absl::StrJoin(tasks, ", "), ": ", ended);
}

// Of an Attempt that was stopped without an answer; a program tells which file it lacks.
std::string WhatIsMissing(const std::string& told) {
  return told.empty() ? "stopped before it had predictions" : told;
}

}  // namespace

LiveAttempt& ControlCore::Impl::AddLive(LiveAttempt live) {
  for (const AttemptPart& part : live.parts) {
    WorkerState& worker = workers_[part.worker];
    if (worker.id.empty()) {
      worker.id = part.worker;
      worker.last_seen = now_;
    }
    worker.attempts.insert(live.id);
  }
  live.owner = live.job->view().owner;
  shares_.Began(live.owner, live.SlotCount(), live.started_at);
  limits_.Add(live.owner, &OwnerUse::slots, live.SlotCount());
  RunOnQuotas(live);
  const int64_t id = live.id;
  LiveAttempt& added = attempts_.emplace(id, std::move(live)).first->second;
  for (const AttemptPart& part : added.parts) {
    WorkerState& worker = workers_[part.worker];
    worker.prepares += added.kind == TaskKind::kPrepare;
    if (!part.slots.empty()) NoteSlots(worker);
    NoteAttempts(worker);
  }
  return added;
}

void ControlCore::Impl::ErasePart(AttemptIt it, AttemptPart& part) {
  SetMissingBy(it->second, part, absl::InfiniteFuture());
  part.over = true;
  limits_.Add(it->second.owner, &OwnerUse::slots, -static_cast<int>(part.slots.size()));
  WorkerState& worker = workers_[part.worker];
  worker.attempts.erase(it->first);
  worker.prepares -= it->second.kind == TaskKind::kPrepare;
  if (!part.slots.empty()) NoteSlots(worker);
  NoteAttempts(worker);
  const auto& parts = it->second.parts;
  const bool over =
      std::all_of(parts.begin(), parts.end(), [](const AttemptPart& p) { return p.over; });
  if (over) attempts_.erase(it);
}

void ControlCore::Impl::SetMissingBy(const LiveAttempt& live, AttemptPart& part, absl::Time by) {
  if (part.missing_by == by) return;
  missing_.erase({part.missing_by, live.id, part.first_rank});
  part.missing_by = by;
  if (by != absl::InfiniteFuture()) missing_.insert({by, live.id, part.first_rank});
}

LiveAttempt* ControlCore::Impl::OpenAttempt(const Task& task) {
  const auto it = attempts_.find(task.attempt);
  return it != attempts_.end() && it->second.open ? &it->second : nullptr;
}

void ControlCore::Impl::SendStop(LiveAttempt& live, StopMode mode, StopReason reason,
                                 const std::string& why) {
  live.stop_sent = true;
  live.aborted |= mode == StopMode::kAbort;
  for (const AttemptPart& part : live.parts) {
    if (!part.over) turn_.stops.push_back({part.worker, live.id, mode, reason, why});
  }
}

void ControlCore::Impl::SendReplan(const LiveAttempt& live, ReplanCommand command) {
  command.attempt = live.id;
  for (const AttemptPart& part : live.parts) {
    if (part.over) continue;
    command.worker = part.worker;
    turn_.replans.push_back(command);
  }
}

void ControlCore::Impl::PartEnded(LiveAttempt& live, const AttemptPart& part,
                                  const facts::Ended& fact) {
  const bool told = live.stop_sent && (fact.reason == AttemptEndReason::kShutdown ||
                                       fact.reason == AttemptEndReason::kPreempted ||
                                       fact.reason == AttemptEndReason::kCancelledByUser);
  if (EndsWell(fact.reason) || told || !live.needs(part)) return;
  EndAttempt(live, fact.reason,
             absl::StrCat("on ", part.worker, fact.message.empty() ? "" : ": ", fact.message));
}

void ControlCore::Impl::CloseAttempt(LiveAttempt& live, AttemptEndReason reason,
                                     const std::string& message) {
  if (!live.open) return;
  Charge(live);
  live.open = false;
  live.closed_at = now_;
  JobEntry& entry = *live.job;
  Job& job = EditDurably(entry);
  for (auto row = job.attempts.rbegin(); row != job.attempts.rend(); ++row) {
    if (row->id != live.id) continue;
    row->ended_at = now_;
    row->end_reason = reason;
    row->message = message;
    break;
  }
  job.tasks[static_cast<size_t>(live.task)].live.reset();
  if (live.spans() && !EndsWell(reason) && !live.aborted) {
    SendStop(live, StopMode::kAbort, StopReason::kStale, "a part of its gang has ended");
  }
  Log(entry, "attempt_ended",
      absl::StrCat(live.id, " ", Name(reason), message.empty() ? "" : ": ", message));
}

void ControlCore::Impl::EndAttempt(LiveAttempt& live, AttemptEndReason reason,
                                   const std::string& message) {
  JobEntry& entry = *live.job;
  CloseAttempt(live, reason, message);
  if (IsTerminal(entry.view().state)) return;
  const Task& task = entry.view().tasks[static_cast<size_t>(live.task)];
  if (task.state != TaskState::kRunning || task.attempt != live.id) return;
  if (UsesModels(live.kind)) {
    InferenceEnded(entry, reason, message);
  } else if (live.kind == TaskKind::kPrepare) {
    PrepareEnded(entry, reason, message);
  } else {
    TakeSmallerBatch(entry, live, reason);
    FoldEnded(entry, live.task, reason, message);
  }
}

// B13: the same again would fail the same. What fails by itself, and not by what it was
// given, is tried with half the rows at a time.
void ControlCore::Impl::TakeSmallerBatch(JobEntry& entry, const LiveAttempt& live,
                                         AttemptEndReason reason) {
  const bool by_itself = reason == AttemptEndReason::kOutOfMemory ||
                         reason == AttemptEndReason::kDiverged ||
                         reason == AttemptEndReason::kInternal;
  if (by_itself && live.batch > 1) {
    EditDurably(entry).tasks[static_cast<size_t>(live.task)].retry_batch = live.batch / 2;
  }
}

void ControlCore::Impl::PrepareEnded(JobEntry& entry, AttemptEndReason reason,
                                     const std::string& message) {
  switch (reason) {
    case AttemptEndReason::kCompleted:
      if (entry.view().table.table.empty()) break;
      EditDurably(entry).tasks[0].state = TaskState::kDone;
      return;
    case AttemptEndReason::kDataError:
    case AttemptEndReason::kUserError: {
      const bool answered = HasAnswer(entry.view());
      Task& task = EditDurably(entry).tasks[0];
      task.state = TaskState::kFailed;
      task.message = message;
      if (answered) return;
      return End(entry, JobState::kFailed,
                 reason == AttemptEndReason::kDataError ? JobEndReason::kDataError
                                                        : JobEndReason::kUserError,
                 message);
    }
    default:
      break;
  }
  RetryOrSettle(entry, 0, FaultOf(reason), reason, message);
}

void ControlCore::Impl::FoldEnded(JobEntry& entry, int task, AttemptEndReason reason,
                                  const std::string& message) {
  switch (reason) {
    case AttemptEndReason::kDeadline:
      return SettleFold(entry, task, "its worker ended it at the deadline");
    case AttemptEndReason::kStoppedInTime:
    case AttemptEndReason::kFinishedByUser:
      // It had its share of the time; only where nothing else is there, or where it had not begun
      // to train, it gets more.
      if (HasBegun(entry.view(), task) && HasOtherFolds(entry, task)) {
        return SettleFold(entry, task, WhatIsMissing(message));
      }
      return RetryOrSettle(entry, task, Fault::kInfrastructure, reason, WhatIsMissing(message));
    case AttemptEndReason::kCompleted:
      // Without its last predictions: what it left before counts.
      if (entry.view().tasks[static_cast<size_t>(task)].member) {
        return SettleFold(entry, task, "ended without its last predictions");
      }
      return RetryOrSettle(entry, task, Fault::kJob, AttemptEndReason::kInternal,
                           "ended without predictions");
    case AttemptEndReason::kDataError:
    case AttemptEndReason::kUserError:
      // The same again would end the same.
      EditDurably(entry).tasks[static_cast<size_t>(task)].failures = options_.max_failures;
      return SettleFold(entry, task, message);
    default:
      return RetryOrSettle(entry, task, FaultOf(reason), reason, message);
  }
}

// Whether the last Attempt of that task came to its first step.
bool ControlCore::Impl::HasBegun(const Job& job, int task) {
  const int64_t attempt = job.tasks[static_cast<size_t>(task)].attempt;
  return std::any_of(job.attempts.begin(), job.attempts.end(), [attempt](const Attempt& row) {
    return row.id == attempt && row.first_step >= 0;
  });
}

bool ControlCore::Impl::HasOtherFolds(const JobEntry& entry, int index) const {
  const Job& job = entry.view();
  if (job.tasks[static_cast<size_t>(index)].member) return true;
  for (size_t i = 1; i < job.tasks.size(); ++i) {
    if (static_cast<int>(i) == index) continue;
    if (job.tasks[i].member || !IsTerminal(job.tasks[i].state)) return true;
  }
  return false;
}

// The least share of the rows in any Plan since that Attempt began.
double ControlCore::Impl::LeastRowsSince(const Job& job, int64_t attempt) {
  double least = 1;
  for (const Attempt& row : job.attempts) {
    if (row.id != attempt) continue;
    for (size_t i = 0; i < job.plans.size(); ++i) {
      const bool counted = i + 1 == job.plans.size() || job.plans[i + 1].at > row.started_at;
      if (counted) least = std::min(least, job.plans[i].row_share);
    }
  }
  return least;
}

void ControlCore::Impl::TakePublishedMember(JobEntry& entry, int index) {
  const Job& job = entry.view();
  const Task& seen = job.tasks[static_cast<size_t>(index)];
  if (!job.prediction || seen.kind != TaskKind::kTrain) return;
  for (const Member& member : job.prediction->members) {
    // Fenced as the fact itself would be: by the number of its Attempt.
    if (member.fold != seen.fold || member.trial != seen.trial || member.seed != seen.seed ||
        member.attempt != seen.attempt) {
      continue;
    }
    if (seen.member && seen.member->attempt == member.attempt && !member.complete) continue;
    // Its Worker could not tell of these epochs; those that a Plan shortened may be among them.
    const double least =
        member.epochs_done > seen.epochs_done ? LeastRowsSince(job, seen.attempt) : 1;
    Task& task = EditDurably(entry).tasks[static_cast<size_t>(index)];
    task.row_share = std::min(task.row_share, least);
    task.member = member;
    task.score = member.score;
    task.epochs_done = std::max(task.epochs_done, member.epochs_done);
    return;
  }
}

// Every retry is paid from the same window (B13): it takes place if there is time
// for it; all but the first loss of a fold of the Plan make it wait, longer each time.
void ControlCore::Impl::RetryOrSettle(JobEntry& entry, int index, Fault fault,
                                      AttemptEndReason reason, const std::string& message) {
  TakePublishedMember(entry, index);
  Job& job = EditDurably(entry);
  Task& task = job.tasks[static_cast<size_t>(index)];
  const std::string what = absl::StrCat(Name(reason), message.empty() ? "" : ": ", message);
  task.failures += fault == Fault::kJob;
  task.losses += fault == Fault::kInfrastructure;
  task.message = what;
  const bool fold = task.kind == TaskKind::kTrain;
  const bool exhausted =
      task.failures >= options_.max_failures || task.losses >= options_.max_losses;
  const bool done = task.member && task.member->complete;
  if (fold &&
      (done || exhausted || StopsTraining(job) || now_ > StartRuleOf(entry, index).Latest(task))) {
    if (!done && !IsExtra(task) && !StopsTraining(job)) {
      DecideRetry(entry, task, what, exhausted ? "given up" : "too late for another");
    }
    return SettleFold(entry, index, what);
  }
  if (exhausted && UsesModels(task.kind)) {
    return ConcludeInference(entry, EndReasonOf(reason), what);
  }
  if (exhausted) {
    task.state = TaskState::kFailed;
    if (!job.table.table.empty()) return;  // the folds answer without a floor
    return End(entry, JobState::kFailed, EndReasonOf(reason),
               absl::StrCat("the data could not be prepared: ", what));
  }
  task.state = TaskState::kPending;
  task.epochs_done = task.checkpoint ? task.checkpoint->epoch : 0;
  // Nobody who knows the Job wanted this end; there is nothing to wait for.
  const bool moved = job.state != JobState::kPaused &&
                     (reason == AttemptEndReason::kPreempted ||
                      (reason == AttemptEndReason::kShutdown && !shutting_down_));
  if (fault == Fault::kNone && !moved) return;
  const int retries = fault == Fault::kJob ? task.failures : task.losses;
  // A fold of the Plan keeps its slot at first: in a pause another that waits would take it, and
  // run to its end.
  const bool keeps_slot = fold && !IsExtra(task) && fault == Fault::kInfrastructure && retries == 1;
  if (!moved && !keeps_slot) task.not_before = now_ + RetryDelay(retries, job.deadline - now_);
  std::string to = UsesModels(task.kind) ? "go on with the models that have not answered"
                   : !fold               ? "read the data again"
                   : task.checkpoint && task.failures < 2
                       ? absl::StrCat("go on from step ", task.checkpoint->step)
                       : "start again";
  if (task.retry_batch > 0) absl::StrAppend(&to, " with batches of ", task.retry_batch);
  if (reason != AttemptEndReason::kPreempted) return DecideRetryTogether(entry, task, what, to);
  if (IsExtra(task)) return;
  Decide(entry, DecisionRule::kPreempt, RetryCause({TaskName(task)}, what),
         AttemptsText({task.attempt}), absl::StrCat(to, " when slots are free"));
}

void ControlCore::Impl::DecideRetry(JobEntry& entry, const Task& task, const std::string& ended,
                                    const std::string& to) {
  entry.last_retry = {now_, entry.view().decisions.size(), ended, {TaskName(task)}, to};
  Decision decision;
  decision.rule = DecisionRule::kRetry;
  decision.attempts = {task.attempt};
  decision.cause = RetryCause({TaskName(task)}, ended);
  decision.from = AttemptsText(decision.attempts);
  decision.to = to;
  AddDecision(entry, std::move(decision));
}

// Tasks that are lost together, as with their Worker, share one Decision. A further model of a
// fold has none: nothing depends on it, and the Attempts tell what became of it.
void ControlCore::Impl::DecideRetryTogether(JobEntry& entry, const Task& task,
                                            const std::string& ended, const std::string& to) {
  if (IsExtra(task)) return;
  LastRetry& last = entry.last_retry;
  const bool together =
      last.at == now_ && last.ended == ended && last.decision + 1 == entry.view().decisions.size();
  if (!together) return DecideRetry(entry, task, ended, to);
  last.tasks.push_back(TaskName(task));
  Decision& shared = EditDurably(entry).decisions.back();
  shared.attempts.push_back(task.attempt);
  shared.cause = RetryCause(last.tasks, ended);
  shared.from = AttemptsText(shared.attempts);
  if (last.to != to) absl::StrAppend(&shared.to, "; ", TaskName(task), ": ", to);
  last.to = to;
  Log(entry, "decision", absl::StrCat("retry: ", RetryCause({TaskName(task)}, ended), ": ", to));
}

void ControlCore::Impl::SettleFold(JobEntry& entry, int index, const std::string& message) {
  TakePublishedMember(entry, index);
  Task& task = EditDurably(entry).tasks[static_cast<size_t>(index)];
  task.state = SettledState(task);
  if (!message.empty()) task.message = message;
  task.not_before = absl::InfinitePast();
  entry.pace.replan_wanted = true;
  // Its slots may have nothing to do now.
  if (entry.view().spec.seeds > 1) entry.pace.planned_at = absl::InfinitePast();
}

}  // namespace traind
