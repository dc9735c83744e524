#include "server/control/control_core.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "server/control/control_core_impl.h"
#include "server/domain/names.h"

namespace traind {

ControlCore::ControlCore(CoreOptions options) : impl_(std::make_unique<Impl>(options)) {}
ControlCore::~ControlCore() = default;
void ControlCore::Restore(Snapshot snapshot, absl::Time now) {
  impl_->Restore(std::move(snapshot), now);
}
Turn ControlCore::Step(std::vector<Event> events, absl::Time now) {
  return impl_->Step(std::move(events), now);
}
bool ControlCore::HasJob(const std::string& id) const { return impl_->HasJob(id); }
std::shared_ptr<const Job> ControlCore::FindJob(const std::string& id) const {
  return impl_->FindJob(id);
}
std::vector<std::shared_ptr<const Job>> ControlCore::ActiveJobs() const {
  return impl_->ActiveJobs();
}

void ControlCore::Impl::Restore(Snapshot snapshot, absl::Time now) {
  // A clock that was put back meanwhile must not make deadlines later.
  now_ = std::max(now, snapshot.last_seen);
  last_attempt_ = snapshot.last_attempt;
  // What earlier starts have waited counts, so that one killed again and again waits no longer.
  if (!options_.standalone) shrink_from_ = now_ + options_.lease - snapshot.awaited;
  awaited_is_stored_ = snapshot.awaited > absl::ZeroDuration();
  RestoreQuotas(snapshot);
  RestoreWorkers(snapshot);
  for (Job& job : snapshot.active) {
    AddEntry(std::make_shared<Job>(std::move(job)));
    JobEntry& entry = *touched_.back();
    entry.job = std::move(entry.draft);
    entry.draft = nullptr;
    const Job& restored = *entry.job;
    entry.publication.wanted = !PredictionIsCurrent(restored);
    entry.pace.replan_wanted = !restored.plans.empty();
    if (StopsTraining(restored)) entry.finish_at = now_;
    entry.proposed_at = now_;
    entry.pace.trusted = !restored.plans.empty() && restored.plans.back().estimate.has_value();
    entry.pace.news_by = now_ + NewsGrace(entry);
    for (const Decision& decision : restored.decisions)
      entry.pace.stopping |= decision.rule == DecisionRule::kB5;
    for (size_t i = 0; i < restored.tasks.size(); ++i) {
      const Task& task = restored.tasks[i];
      for (const Attempt& attempt : restored.attempts) {
        last_attempt_ = std::max(last_attempt_, attempt.id);
        if (attempt.id != task.attempt || attempt.ended_at != absl::InfiniteFuture()) continue;
        LiveAttempt live;
        live.id = attempt.id;
        live.job = &entry;
        live.task = static_cast<int>(i);
        live.kind = task.kind;
        live.parts.push_back({attempt.worker, attempt.slots});
        for (const GangPart& part : attempt.others) {
          const int first_rank = live.SlotCount();
          live.parts.push_back({part.worker, part.slots, first_rank});
        }
        if (!IsExtra(task) && HadItsTurn(restored, task)) live.back_after = task.epochs_done;
        live.saved_last = IsTerminal(task.state);
        live.started_at = attempt.started_at;
        live.last_epoch = static_cast<int>(task.epochs_done);
        AddLive(std::move(live));
      }
    }
  }
  for (JobEntry* entry : touched_) {
    if (!entry->job->after.empty()) RestoreAfter(*entry);
  }
  // traind may have been killed before the disk was told of their end.
  turn_.ended = std::move(snapshot.ended_lately);
  // The first Step looks at all of them.
}

Turn ControlCore::Impl::Step(std::vector<Event> events, absl::Time now) {
  KeepTime(now);
  for (size_t i = 0; i < events.size(); ++i) {
    CheckBatch(events, i);
    std::visit([this](auto& e) { Handle(e); }, events[i]);
  }
  CheckWorkers();
  DrainWorkers();
  CheckQuotas();
  ReplanAll();
  while (!wakeups_.empty() && wakeups_.begin()->first.first <= now_) {
    JobEntry& due = *wakeups_.begin()->second;
    wakeups_.erase(wakeups_.begin());
    due.wake_at = absl::InfiniteFuture();
    Touch(due);
  }
  for (size_t i = 0; i < touched_.size(); ++i) {
    Advance(*touched_[i]);
    TellEnded();
  }
  Dispatch();
  CloseTurn();
  Turn turn = std::move(turn_);
  turn_ = Turn();
  return turn;
}

void ControlCore::Impl::KeepTime(absl::Time now) {
  now = std::max(now, now_);
  // Nobody ran this loop for a while (a suspended machine, a stopped process): what
  // Workers said meanwhile is still on its way, so their Leases rest as long.
  const absl::Duration late = now - std::max(wanted_wakeup_, now_);
  if (wanted_wakeup_ != absl::InfiniteFuture() && late > options_.lease / 2) {
    for (auto& [id, worker] : workers_) worker.last_seen += late;
    for (const auto& [by, id, first_rank] : std::set(missing_)) {
      LiveAttempt& live = attempts_.at(id);
      for (AttemptPart& part : live.parts) {
        if (part.first_rank == first_rank) SetMissingBy(live, part, by + late);
      }
    }
  }
  now_ = now;
}

// ---- Jobs ----

void ControlCore::Impl::AddEntry(std::shared_ptr<Job> job) {
  auto owned = std::make_unique<JobEntry>();
  JobEntry& entry = *owned;
  entry.sequence = next_sequence_++;
  entry.shape = {job->spec.slots, job->spec.device, job->spec.constraints};
  entry.pace.epochs_s.resize(job->tasks.size());
  if (!job->request_id.empty()) requests_[{job->owner, job->request_id}] = &entry;
  limits_.Add(job->owner, &OwnerUse::jobs, 1);
  CountSources(*job, 1);
  for (const std::string& id : job->after) waiting_[id].push_back(job->id);
  entry.draft = std::move(job);
  jobs_.emplace(entry.draft->id, std::move(owned));
  Touch(entry);
}

void ControlCore::Impl::Remove(JobEntry& entry) {
  const Job& job = entry.view();
  for (const Attempt& attempt : job.attempts) {
    const auto live = attempts_.find(attempt.id);
    if (live != attempts_.end()) live->second.job = nullptr;
  }
  const RequestKey key(job.owner, job.request_id);
  if (!job.request_id.empty()) {
    requests_.erase(key);
    ended_[key] = entry.job;
  }
  ended_states_[job.id] = job.state;
  ended_order_.emplace_back(now_, key, job.id);
  limits_.Add(job.owner, &OwnerUse::jobs, -1);
  CountSources(job, -1);
  const std::string id = job.id;
  jobs_.erase(id);
}

JobEntry* ControlCore::Impl::Find(const std::string& id) const {
  const auto it = jobs_.find(id);
  return it == jobs_.end() ? nullptr : it->second.get();
}

std::shared_ptr<const Job> ControlCore::Impl::FindJob(const std::string& id) const {
  const JobEntry* entry = Find(id);
  if (!entry) return nullptr;
  if (!entry->train_key && !entry->prepare_key) return entry->job;
  // Where it stands changes with other Jobs, so it is counted when someone asks.
  auto job = std::make_shared<Job>(*entry->job);
  if (entry->train_key) {
    job->queue_position = PlaceOf(*entry);
  } else {
    job->queue_position = 1 + static_cast<int>(prepare_queue_.order_of_key(*entry->prepare_key));
  }
  job->pending_reason = WhyPending(*entry, job->queue_position);
  return job;
}

std::vector<std::shared_ptr<const Job>> ControlCore::Impl::ActiveJobs() const {
  std::vector<const JobEntry*> entries;
  entries.reserve(jobs_.size());
  for (const auto& [id, entry] : jobs_) entries.push_back(entry.get());
  std::sort(entries.begin(), entries.end(),
            [](const JobEntry* a, const JobEntry* b) { return a->sequence < b->sequence; });
  std::vector<std::shared_ptr<const Job>> jobs;
  jobs.reserve(entries.size());
  for (const JobEntry* entry : entries) jobs.push_back(entry->job);
  return jobs;
}

void ControlCore::Impl::Touch(JobEntry& entry) {
  if (entry.touched) return;
  entry.touched = true;
  touched_.push_back(&entry);
}

Job& ControlCore::Impl::EditLive(JobEntry& entry) {
  Touch(entry);
  entry.pace.typical.reset();
  entry.pace.transfers.reset();
  if (!entry.draft) entry.draft = std::make_shared<Job>(*entry.job);
  return *entry.draft;
}

Job& ControlCore::Impl::Edit(JobEntry& entry) {
  entry.stored = true;
  return EditLive(entry);
}

Job& ControlCore::Impl::EditDurably(JobEntry& entry) {
  turn_.mutations.durable = true;
  return Edit(entry);
}

void ControlCore::Impl::Log(const JobEntry& entry, const char* kind, std::string detail) {
  turn_.mutations.events.push_back({entry.view().id, now_, kind, std::move(detail)});
}

void ControlCore::Impl::Decide(JobEntry& entry, DecisionRule rule, std::string cause,
                               std::string from, std::string to, std::string effect) {
  AddDecision(entry,
              {now_, rule, std::move(cause), std::move(from), std::move(to), std::move(effect)});
}

void ControlCore::Impl::AddDecision(JobEntry& entry, Decision decision) {
  decision.at = now_;
  Log(entry, "decision",
      absl::StrCat(Name(decision.rule), ": ", decision.cause, ": ", decision.from, " -> ",
                   decision.to));
  EditDurably(entry).decisions.push_back(std::move(decision));
}

// Does what the time and the facts ask for; doing it twice changes nothing.
void ControlCore::Impl::Advance(JobEntry& entry) {
  if (IsTerminal(entry.view().state)) return UpdateQueues(entry);
  if (entry.view().cancel_requested) {
    AdvanceCancelled(entry);
    return UpdateQueues(entry);
  }
  if (!entry.view().after.empty()) return AdvanceWaiting(entry);
  if (TrainsNothing(entry.view())) return AdvanceInference(entry);
  if (entry.view().state != JobState::kFinalizing) {
    if (entry.view().state == JobState::kPaused) {
      StopPaused(entry);
    } else if (now_ < FinalizeAt(entry)) {
      // Once the last Prediction is due there is nothing left to plan; a traind that was
      // away until now would only write down what its Workers have long decided.
      StopLate(entry);
      AskReuse(entry);
      PlanWhenDue(entry);
      DropHopeless(entry);
      BringBackStopped(entry);
      StartTrials(entry);
    }
    if (FinalizingDue(entry)) EnterFinalizing(entry);
  }
  if (entry.view().state == JobState::kFinalizing) {
    AdvanceFinalizing(entry);
  } else {
    MaybePublish(entry, false);
  }
  UpdateQueues(entry);
}

// Puts the Job where Dispatch looks for work.
void ControlCore::Impl::UpdateQueues(JobEntry& entry) {
  const Job& job = entry.view();
  const bool over = IsTerminal(job.state) || job.cancel_requested;
  int running = 0;
  bool ready = false, waits = false, back = false, ready_back = false, ready_extra = false;
  for (size_t i = 1; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    const bool pending = task.state == TaskState::kPending;
    const bool now = pending && task.not_before <= now_;
    running += task.state == TaskState::kRunning;
    const bool comes_back = ComesBack(job, task);
    back |= comes_back;
    waits |= pending && !comes_back;
    (IsExtra(task) ? ready_extra : comes_back ? ready_back : ready) |= now;
  }
  ready_back = ready_back && !FoldsWait(job);
  const bool extra = !ready && (ready_back || (ready_extra && !FirstTrialNeedsMore(entry)));
  ready |= extra;
  const bool trains = !over && job.state != JobState::kFinalizing &&
                      job.state != JobState::kPaused && !job.table.table.empty() &&
                      !AwaitsReuse(entry);
  const bool starved = trains && ready && running == 0;
  entry.starved_since = starved ? std::min(entry.starved_since, now_) : absl::InfiniteFuture();
  Urgency urgency{running, extra, job.deadline, job.spec.priority, job.accepted_at, entry.sequence};
  if (trains && ready) urgency.latest_start -= LeastLeft(entry);
  const auto same = [](const Urgency& a, const Urgency& b) { return a.Key() == b.Key(); };

  const bool finishes = TrainsNothing(job) && job.finish_requested;
  const bool prepares = !over && !finishes && job.after.empty() && job.state != JobState::kPaused &&
                        job.tasks[0].state == TaskState::kPending &&
                        job.tasks[0].not_before <= now_;
  if (entry.prepare_key && !prepares) {
    prepare_queue_.erase(*entry.prepare_key);
    entry.prepare_key.reset();
  } else if (!entry.prepare_key && prepares) {
    entry.prepare_key = urgency;
    entry.prepare_key->gangs = 0;
    prepare_queue_.insert({*entry.prepare_key, &entry});
  }
  if (entry.train_key && !(trains && ready && same(*entry.train_key, urgency))) {
    LeaveTrainQueue(entry);
  }
  if (!entry.train_key && trains && ready) {
    JoinTrainQueue(entry, urgency);
  }
  const bool shares = trains && (running > 0 || waits);
  if (trains && back && !shares) {
    comebacks_.emplace(entry.sequence, &entry);
  } else {
    comebacks_.erase(entry.sequence);
  }
  if (shares) {
    JoinTraining(entry);
  } else if (LeaveTraining(entry)) {
    ReplanTraining();
  }
}

void ControlCore::Impl::JoinTraining(JobEntry& entry) {
  const Job& job = entry.view();
  if (!training_.emplace(entry.sequence, &entry).second) return;
  limits_.Add(job.owner, &OwnerUse::training, 1);
  if (job.deadline != absl::InfiniteFuture()) {
    training_in_time_.insert(entry.sequence);
    limits_.Add(job.owner, &OwnerUse::training_in_time, 1);
  }
  ReplanTraining();
}

bool ControlCore::Impl::LeaveTraining(JobEntry& entry) {
  if (training_.erase(entry.sequence) == 0) return false;
  const std::string& owner = entry.view().owner;
  if (training_in_time_.erase(entry.sequence) > 0) {
    limits_.Add(owner, &OwnerUse::training_in_time, -1);
  }
  limits_.Add(owner, &OwnerUse::training, -1);
  return true;
}

void ControlCore::Impl::SetState(JobEntry& entry, JobState state) {
  if (entry.view().state == state) return;
  Job& job = EditDurably(entry);
  Log(entry, "state", absl::StrCat(Name(job.state), " -> ", Name(state)));
  job.state = state;
}

// QUEUED, PLANNING and RUNNING follow from the tasks; the others are asked for, or due.
void ControlCore::Impl::UpdateState(JobEntry& entry) {
  const Job& job = entry.view();
  if (IsTerminal(job.state) || job.state == JobState::kFinalizing ||
      job.state == JobState::kPaused) {
    return;
  }
  bool trains = false, backs_off = false;
  for (size_t i = 1; i < job.tasks.size(); ++i) {
    trains |= job.tasks[i].state == TaskState::kRunning;
    backs_off |= job.tasks[i].state == TaskState::kPending && job.tasks[i].not_before > now_;
  }
  if (trains) return SetState(entry, JobState::kRunning);
  const bool prepares = job.tasks[0].state == TaskState::kRunning;
  if (TrainsNothing(job)) {
    return SetState(entry, prepares ? JobState::kRunning : JobState::kQueued);
  }
  if (job.state == JobState::kRunning &&
      (prepares || entry.awaits_proposal || (backs_off && Gangs(entry) > 0))) {
    return;
  }
  SetState(entry, prepares ? JobState::kPlanning : JobState::kQueued);
}

PendingReason ControlCore::Impl::WhyPending(const JobEntry& entry, int position) const {
  const Job& job = entry.view();
  if (IsTerminal(job.state) || job.state == JobState::kRunning ||
      job.state == JobState::kFinalizing || job.state == JobState::kPaused) {
    return PendingReason::kNone;
  }
  if (!job.after.empty()) return PendingReason::kOtherJobs;
  if (job.tasks[0].state == TaskState::kRunning) return PendingReason::kPreparing;
  if (QuotaEndOf(entry) <= now_) return PendingReason::kQuota;
  bool backs_off = job.tasks[0].state == TaskState::kPending && job.tasks[0].not_before > now_;
  bool ready = false;
  for (size_t i = 1; i < job.tasks.size(); ++i) {
    if (job.tasks[i].state != TaskState::kPending) continue;
    (job.tasks[i].not_before > now_ ? backs_off : ready) = true;
  }
  if (backs_off && !(ready && entry.train_key)) return PendingReason::kBackoff;
  if (GangsOfMachines(entry) == 0) return PendingReason::kNoMatchingWorker;
  if (IsHeldBack(entry)) return PendingReason::kQuota;
  if (limits_.Gangs(entry.shape.slots) == 0) return PendingReason::kNoMatchingWorker;
  return position > 1 ? PendingReason::kPriority : PendingReason::kResources;
}

// The first places are told exactly (NoteWaits); counting the others is left to FindJob.
int ControlCore::Impl::CoarsePosition(const JobEntry& entry) const {
  if (!entry.train_key && !entry.prepare_key) return 0;
  if (!entry.train_key) {
    const bool first = prepare_queue_.begin()->second == &entry;
    return first ? 1 : static_cast<int>(prepare_queue_.size());
  }
  if (entry.place > 0) return entry.place;
  return static_cast<int>(train_queue_.at(QueueNameOf(entry)).size());
}

// ---- the end of a turn ----

void ControlCore::Impl::SetWakeup(JobEntry& entry) {
  absl::Time wake = absl::InfiniteFuture();
  if (!IsTerminal(entry.view().state)) CollectWakeups(entry, &wake);
  if (wake == entry.wake_at) return;
  if (entry.wake_at != absl::InfiniteFuture()) wakeups_.erase({entry.wake_at, entry.sequence});
  entry.wake_at = wake;
  if (wake != absl::InfiniteFuture()) wakeups_[{wake, entry.sequence}] = &entry;
}

void ControlCore::Impl::CollectWakeups(const JobEntry& entry, absl::Time* wake) const {
  const auto at = [this, wake](absl::Time t) {
    if (t > now_ && t < *wake) *wake = t;
  };
  const Job& job = entry.view();
  if (!job.after.empty()) return at(job.deadline);
  at(FinalizeAt(entry));
  if (job.state != JobState::kFinalizing) at(LastCallOf(entry));
  at(SettleAt(entry));
  at(ConcludeAt(entry));
  if (job.tasks[0].state == TaskState::kPending) at(job.tasks[0].not_before);
  if (entry.publication.wanted && !entry.publication.running) at(entry.publication.not_before);
  if (entry.finish_at != absl::InfiniteFuture()) at(entry.finish_at + kFinishWait);
  if (entry.reuse.asked && !entry.reuse.answered) at(entry.reuse.answer_by);
  at(entry.publication.disk_by);
  if (job.state == JobState::kFinalizing || job.state == JobState::kPaused) return;
  const Window window = WindowOf(entry);
  const StartRule rule = window.bounded() ? StartRuleOf(entry) : StartRule();
  if (entry.awaits_proposal) {
    at(ProposalDue(entry));
    if (window.bounded()) at(rule.Latest(OneEpoch()) + absl::Milliseconds(1));
  }
  for (size_t i = 1; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    if (task.state == TaskState::kPending) {
      at(task.not_before);
      const bool back = ComesBack(job, task);
      const absl::Time latest = back ? LatestComeback(entry, task) : rule.Latest(task);
      if (window.bounded()) at(latest + absl::Milliseconds(1));
    } else if (task.state == TaskState::kRunning) {
      const auto live = attempts_.find(task.attempt);
      if (live != attempts_.end() && !live->second.stop_sent) {
        at(live->second.stop_at + kStopGrace);
      }
    }
  }
  if (!window.bounded() || job.plans.empty()) return;
  if (entry.shape.slots > 1) at(WholeGangUntil(entry));
  if (entry.pace.replan_wanted) at(entry.pace.planned_at + ReplanInterval(entry));
  at(entry.pace.news_by);
  if (!entry.pace.stop_checked) at(window.At(job.spec.shares.stop));
  if (!entry.pace.first_fold_checked) {
    const absl::Time first = FirstTrainStart(entry);
    if (first != absl::InfiniteFuture()) {
      at(first + job.spec.shares.first_fold * window.length() + absl::Milliseconds(1));
    }
  }
}

void ControlCore::Impl::CloseTurn() {
  for (size_t i = 0; i < touched_.size(); ++i) {  // it may grow
    JobEntry& entry = *touched_[i];
    UpdateState(entry);
    UpdateQueues(entry);
  }
  for (JobEntry* entry : touched_) {
    SetWakeup(*entry);
    entry->touched = false;
    if (!entry->draft) continue;
    Job& job = *entry->draft;
    job.estimated_finish =
        job.state == JobState::kRunning ? entry->pace.estimated_finish : absl::InfiniteFuture();
    job.queue_position = CoarsePosition(*entry);
    job.pending_reason = WhyPending(*entry, job.queue_position);
    if (job.pending_reason == PendingReason::kOtherJobs) {
      job.waits_for = AfterText(job);
    } else if (job.pending_reason == PendingReason::kQuota && IsHeldBack(*entry)) {
      job.waits_for = HeldBackText(*entry);
      job.expected_start = absl::InfiniteFuture();
    } else if (!LacksSlots(job.pending_reason)) {
      job.waits_for.clear();
      job.expected_start = absl::InfiniteFuture();
    }
    if (entry->stored) {
      ++job.version;
      turn_.mutations.jobs.push_back(entry->draft);
    }
    entry->stored = false;
    entry->job = std::move(entry->draft);
    entry->draft = nullptr;
    turn_.changed.push_back(entry->job);
  }
  for (size_t i = 0; i < turn_.starts.size(); ++i) turn_.starts[i].job = start_owners_[i]->job;
  for (size_t i = 0; i < turn_.replies.size(); ++i) {
    if (reply_owners_[i]) turn_.replies[i].job = reply_owners_[i]->job;
  }
  for (const auto& [session, sequence] : acks_) {
    turn_.acks.push_back({session.first, session.second, sequence});
  }
  for (JobEntry* entry : touched_) {
    if (IsTerminal(entry->job->state)) Remove(*entry);
  }
  ForgetEnded();
  ForgetDeleted();
  touched_.clear();
  start_owners_.clear();
  reply_owners_.clear();
  acks_.clear();
  aborted_.clear();
  Mutations& mutations = turn_.mutations;
  if (!mutations.empty() || (!jobs_.empty() && now_ - time_stored_ >= absl::Seconds(5))) {
    mutations.last_seen = now_;
    time_stored_ = now_;
  }
  turn_.next_wakeup = std::min({NextWorkerCheck(), quota_check_at_, preempt_check_at_});
  const absl::Time soon = now_ + absl::Milliseconds(1);
  if (shares_changed_) {
    turn_.next_wakeup = std::min(turn_.next_wakeup, std::max(shares_at_ + kWalkInterval, soon));
  }
  if (std::exchange(more_to_start_, false)) turn_.next_wakeup = std::min(turn_.next_wakeup, soon);
  if (!wakeups_.empty()) {
    turn_.next_wakeup = std::min(turn_.next_wakeup, wakeups_.begin()->first.first);
  }
  wanted_wakeup_ = turn_.next_wakeup;
}

}  // namespace traind
